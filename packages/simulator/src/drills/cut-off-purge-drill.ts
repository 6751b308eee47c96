import type { Findings } from '../checkers/final-state.ts'
import { DrillDocuments, endsInOneBranch, getAtRest } from './drill.ts'
import type { DrillContext, EditedDocument } from './drill.ts'

const settleMs = 1000
const purgedAlone = 2

/**
 * A node is cut off while documents are edited and purged. A purge through this node, which has missed the edits, is
 * refused, and removes nothing. A purge through another node removes the older revisions of the node that missed the
 * edit, too.
 */
export async function cutOffPurgeDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, number, others, world } = context
  const documents = new DrillDocuments(context)
  await documents.make()
  await world.sleep(settleMs)
  world.partition([number], others)
  const edited = await documents.edit()
  const [kept, removed] = [edited.slice(0, purgedAlone), edited.slice(purgedAlone)]
  const findings: string[] = []
  for (const document of kept) {
    const { status, body } = await purge(context, document, number)
    if (status !== 201 && status !== 202) continue
    findings.push(`node ${number}, which has missed ${document.id} ${document.lastRevision} and is cut off, answered a `
      + `purge of it with ${status} ${JSON.stringify(body)}`)
  }
  const purged: EditedDocument[] = []
  for (const document of removed) {
    const { status, body } = await purge(context, document, dice.pick(others))
    if ((status === 201 || status === 202) && body.purged[document.id]?.length === 1) purged.push(document)
  }
  world.heal()
  await world.ready()
  await world.converge(database)
  for (const { id, lastRevision } of purged) {
    for (const node of world.nodes) {
      const { status, body } = await getAtRest(world, node.number, `/${database}/${id}`)
      if (status === 404) continue
      findings.push(`node ${node.number} answered ${status} ${body._rev ?? ''} for ${id}, whose only leaf `
        + `${lastRevision} was purged`)
    }
  }
  return findings.length > 0 ? findings : endsInOneBranch(context, kept)
}

function purge(
  { database, world }: DrillContext, { id, lastRevision }: EditedDocument, through: number,
): ReturnType<DrillContext['world']['send']> {
  return world.send(through, 'POST', `/${database}/_purge`, { [id]: [lastRevision] })
}
