import type { Findings } from '../checkers/final-state.ts'
import { DrillDocuments, endsInOneBranch, getAtRest } from './drill.ts'
import type { DrillContext, EditedDocument } from './drill.ts'
import { pickShard } from './shard-roles.ts'

const settleMs = 1000
const purgedAlone = 2
/** Documents of one range, whose purges are more than the range keeps records of. */
const forgotten = 4
const purgedInfosLimit = { small: 1, usual: 1000 }
/** Milliseconds after which the other replicas have told each other which purges they have applied. */
const exchangedMs = 6000
/** Longer than the pause between two rounds of the upkeep. */
const roundMs = 400_000
/** Longer than a round of the upkeep. */
const upkeepMs = 1000

/**
 * A node is cut off while documents are edited and purged. A purge through this node, which has missed the edits, is
 * refused, and removes nothing. A purge through another node removes the older revisions of the node that missed the
 * edit, too, also after the records of purges would have been deleted if all nodes had been there.
 */
export async function cutOffPurgeDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, number, others, world } = context
  const documents = new DrillDocuments(context)
  await documents.make()
  const crowded = await makeCrowded(context)
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
  for (const document of [...removed, ...crowded]) {
    const { status, body } = await purge(context, document, dice.pick(others))
    if ((status === 201 || status === 202) && body.purged[document.id]?.length === 1) purged.push(document)
  }
  if (crowded.length > 0) await trimmed(context)
  world.heal()
  await world.ready()
  await world.converge(database)
  await world.send(dice.pick(others), 'PUT', `/${database}/_purged_infos_limit`, purgedInfosLimit.usual)
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

/** Makes documents of one range, which is to keep few records of purges. */
async function makeCrowded(context: DrillContext): Promise<readonly EditedDocument[]> {
  const { database, dice, others, world } = context
  const { ids } = await pickShard(context, forgotten)
  const limit = await world.send(dice.pick(others), 'PUT', `/${database}/_purged_infos_limit`, purgedInfosLimit.small)
  if (limit.status !== 200) return []
  const made: EditedDocument[] = []
  for (const id of ids) {
    const { body, status } = await world.write(dice.pick(others), database, id, { drill: 'purged with others' })
    if (status === 201) made.push({ id, firstRevision: body.rev, lastRevision: body.rev })
  }
  return made
}

/** Lets the nodes delete records of purges. */
async function trimmed({ others, world }: DrillContext): Promise<void> {
  await world.sleep(exchangedMs)
  const resume = world.suspend()
  await world.sleep(roundMs)
  resume()
  await world.ready(others)
  await world.sleep(upkeepMs)
}

function purge(
  { database, world }: DrillContext, { id, lastRevision }: EditedDocument, through: number,
): ReturnType<DrillContext['world']['send']> {
  return world.send(through, 'POST', `/${database}/_purge`, { [id]: [lastRevision] })
}
