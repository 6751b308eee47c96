import type { Findings } from '../checkers/final-state.ts'
import type { DrillContext } from './drill.ts'

const settleMs = 1000
const deletedMsMax = 60_000

/**
 * A node whose disk is full cannot store the metadata log. It does not say that a database is missing that was created
 * elsewhere, and a request to delete it is carried out, promised or refused with a reason, but is no internal error.
 */
export async function staleMetadataDrill(context: DrillContext): Promise<Findings> {
  const { dice, disks, number, others, world } = context
  const through = dice.pick(others)
  const trouble = disks.of(world.node(number))
  const path = `/drill${dice.seed()}`
  trouble.full = true
  await world.sleep(dice.wait(settleMs))
  const findings: string[] = []
  const created = await world.send(through, 'PUT', `${path}?q=1&n=3`)
  const exists = created.status === 201 || created.status === 202
  let promised = false
  if (exists) {
    const seen = await world.send(number, 'GET', path)
    if (seen.status === 404) {
      findings.push(`node ${number} answered 404 for ${path}, which node ${through} had created`)
    }
    const deleted = await world.send(number, 'DELETE', path)
    promised = deleted.status === 200 || deleted.status === 202
    if (deleted.status === 500) {
      findings.push(`node ${number} answered DELETE ${path} with 500 ${JSON.stringify(deleted.body)}`)
    }
  }
  trouble.full = false
  await world.allReady()
  await world.eventually(`${path} to be deleted`, deletedMsMax, async () => {
    if (!promised) await world.send(through, 'DELETE', path)
    for (const node of world.nodes) {
      const { status } = await world.send(node.number, 'GET', path)
      if (status !== 404) return `node ${node.number} answers ${status}`
    }
    return null
  })
  return findings
}
