import { DrillDocuments, getAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'
import type { Findings } from '../checkers/final-state.ts'

const settleMs = 3000
const writeMs = 500

interface Row { readonly id: string; readonly changes: readonly { readonly rev: string }[] }

/**
 * A feed reads a node whose replicas lack what others have acknowledged, because its disk is full. Feeds that continue
 * from its token through any node, before and after the replicas are equal, omit none of it.
 */
export async function tokenDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, disks, number, others, world } = context
  const documents = new DrillDocuments(context)
  await documents.make()
  await world.sleep(settleMs)
  const trouble = disks.of(world.node(number))
  trouble.full = true
  const edited = await documents.edit()
  await world.sleep(dice.wait(writeMs))
  const { body, status } = await world.send(number, 'GET', `/${database}/_changes`)
  const findings: string[] = []
  const continued = async (): Promise<void> => {
    if (status !== 200) return
    for (const through of [...others, number]) {
      const since = encodeURIComponent(body.last_seq)
      const answer = await getAtRest(world, through, `/${database}/_changes?since=${since}`)
      if (answer.status !== 200) continue
      const told = new Set([...body.results, ...answer.body.results].map(({ changes, id }: Row) =>
        `${id} ${changes[0]!.rev}`))
      const missed = edited.filter(({ id, lastRevision }) => !told.has(`${id} ${lastRevision}`))
      if (missed.length === 0) continue
      findings.push(`a feed of ${database} through node ${through} since ${body.last_seq} of node ${number}, whose disk `
        + `was full, omits ${missed.map(({ id }) => id).join(', ')}`)
    }
  }
  await continued()
  trouble.full = false
  await world.allReady()
  await world.converge(database)
  await continued()
  return findings
}
