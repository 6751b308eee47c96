import { controlStoreName } from '@sectional/server'
import type { Findings } from '../checkers/final-state.ts'
import type { DrillContext } from './drill.ts'

const users = 3
const option = '/_node/_local/_config/couch_peruser/enable'
const createdMsMax = 60_000
/** Longer than the time from a change to the next checkpoint of the work. */
const checkpointMs = 5000

/**
 * Users are made while no node can store metadata, and then the leader crashes, which creates their databases. Each
 * user gets a database nevertheless.
 */
export async function usersDrill(context: DrillContext): Promise<Findings> {
  const { dice, disks, world } = context
  const enabled = async (value: boolean): Promise<void> => {
    for (const { number } of world.nodes) await world.send(number, 'PUT', option, `${value}`)
  }
  await world.eventually('_users to exist', createdMsMax, async () => {
    const { status } = await world.send(1, 'PUT', '/_users')
    return status === 201 || status === 202 || status === 412 ? null : `status ${status}`
  })
  await enabled(true)
  await world.sleep(dice.wait(checkpointMs))
  const leader = world.leader()
  for (const node of world.nodes) Object.assign(disks.of(node), { store: controlStoreName, full: true })
  const names = Array.from({ length: users }, () => `u${dice.seed()}`)
  const docs = names.map(name => ({
    _id: `org.couchdb.user:${name}`, name, type: 'user', roles: [], iterations: 1, password_scheme: 'pbkdf2',
    salt: 'salt', derived_key: '00',
  }))
  const written = await world.send(dice.pick(world.nodes).number, 'POST', '/_users/_bulk_docs', { docs })
  await world.sleep(checkpointMs)
  for (const node of world.nodes) Object.assign(disks.of(node), { store: undefined, full: false })
  if (leader !== undefined) {
    world.crash(leader.number)
    await world.start(leader.number)
  }
  await world.allReady()
  const paths = names.map(name => `/userdb-${Buffer.from(name).toString('hex')}`)
  const acknowledged = paths.filter((_, index) => written.body?.[index]?.ok === true && !written.body[index].accepted)
  const lacking = async (): Promise<readonly string[]> => {
    const statuses = await Promise.all(acknowledged.map(async path => (await world.send(1, 'GET', path)).status))
    return acknowledged.filter((_, index) => statuses[index] !== 200)
  }
  const endMs = world.nowMs + createdMsMax
  while ((await lacking()).length > 0 && world.nowMs < endMs) await world.sleep(checkpointMs)
  const findings = (await lacking()).map(path => `the database ${path} of a user is not made`)
  await enabled(false)
  for (const path of paths) await world.send(1, 'DELETE', path)
  return findings
}
