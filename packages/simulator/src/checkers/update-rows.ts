import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import type { Findings } from './final-state.ts'

/**
 * Milliseconds until nothing that was written before is recorded any more. After its disk failed, a replica tells up to
 * 30 s after the recovery that the last batch may have been written.
 */
const settleMs = 40_000
/** Milliseconds for which the feed waits for a row, and for further rows. */
const waitMs = 2000
const writeAfterMs = 100

/**
 * Without faults, one write gives one `updated` row in `_db_updates`, through whichever nodes the feed is read and the
 * write made.
 */
export async function updateRows(world: World, dice: Dice, database: string): Promise<Findings> {
  await world.sleep(settleMs)
  const { status, body } = await world.send(dice.pick(world.nodes).number, 'GET', '/_db_updates')
  if (status !== 200) return [`_db_updates is answered ${status} ${JSON.stringify(body)}`]
  const followed = world.send(
    dice.pick(world.nodes).number, 'GET', `/_db_updates?feed=continuous&since=${body.last_seq}&timeout=${waitMs}`,
  )
  await world.sleep(writeAfterMs)
  const written = await world.write(dice.pick(world.nodes).number, database, `told:${dice.seed()}`, { told: true })
  const rows = String((await followed).body).split('\n').filter(line => line.includes('"db_name"'))
    .map(line => JSON.parse(line) as { readonly db_name: string; readonly type: string })
    .filter(({ db_name: name, type }) => name === database && type === 'updated')
  if (written.status !== 201) return []
  return rows.length === 1 ? []
    : [`one write to ${database} gave ${rows.length} rows in _db_updates within ${waitMs} ms`]
}
