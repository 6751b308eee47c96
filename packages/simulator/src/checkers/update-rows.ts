import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import type { Findings } from './final-state.ts'

/** Milliseconds until nothing that was written before is recorded any more. */
const settleMs = 10_000
/** Milliseconds for which the feed waits for further rows. */
const waitMs = 2000
/** Half a second as documented, and the delays of slow links. */
const rowMsMax = 1000
const writeAfterMs = 100

/**
 * Without faults, one write gives one `updated` row in `_db_updates`, through whichever nodes the feed is read and the
 * write made.
 */
export async function updateRows(world: World, dice: Dice, database: string): Promise<Findings> {
  await world.sleep(settleMs)
  const { status, body } = await world.send(dice.pick(world.nodes).number, 'GET', '/_db_updates')
  if (status !== 200) return [`_db_updates is answered ${status} ${JSON.stringify(body)}`]
  const follow = (feed: string): ReturnType<World['send']> => world.send(
    dice.pick(world.nodes).number, 'GET', `/_db_updates?feed=${feed}&since=${body.last_seq}&timeout=${waitMs}`,
  )
  const all = follow('continuous')
  const first = follow('longpoll').then(() => world.nowMs)
  await world.sleep(writeAfterMs)
  const written = await world.write(dice.pick(world.nodes).number, database, `told:${dice.seed()}`, { told: true })
  const writtenMs = world.nowMs
  const rows = String((await all).body).split('\n').filter(line => line.includes('"db_name"'))
    .map(line => JSON.parse(line) as { readonly db_name: string; readonly type: string })
    .filter(({ db_name: name, type }) => name === database && type === 'updated')
  if (written.status !== 201) return []
  if (rows.length !== 1) return [`one write to ${database} gave ${rows.length} rows in _db_updates`]
  const lateMs = Math.round(await first - writtenMs)
  return lateMs > rowMsMax ? [`the row of a write to ${database} came after ${lateMs} ms in _db_updates`] : []
}
