import { majority } from '@sectional/server'
import type { ControlPlaneNode } from '@sectional/server'
import { getAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'
import type { Findings } from '../checkers/final-state.ts'

/** With the default ticks of the consensus, a node that starts waits up to 3 s for the leader (docs/reliability.md). */
const watchedMs = 2900
const pollMs = 20
const settleMs = 1000

/**
 * While a node is away, a database is deleted and another one created. When it returns, so many other nodes have
 * stopped that with it the voters have a majority. From its first answer on, it knows both.
 */
export async function knownMetadataDrill(context: DrillContext): Promise<Findings> {
  const { dice, number, others, world } = context
  const through = dice.pick(others)
  const [gone, made] = ['gone', 'made'].map(name => `/drill${name}${dice.seed()}`) as [string, string]
  const created = await world.send(through, 'PUT', `${gone}?q=1&n=1`)
  if (created.status !== 201) return []
  await world.sleep(settleMs)
  await world.stop(number)
  const deleted = await world.send(through, 'DELETE', gone)
  const second = await world.send(through, 'PUT', `${made}?q=1&n=1`)
  const voters = (world.node(through).inside!.control as ControlPlaneNode).votingConfiguration()?.voters ?? []
  const otherVoters = others.filter(other => voters.includes(world.node(other).name))
  const absent = dice.sample(otherVoters, voters.length - majority(voters.length))
  await world.stop(...absent)
  const findings: string[] = []
  const startedMs = world.nowMs
  await world.start(number)
  while (world.nowMs < startedMs + watchedMs && findings.length === 0) {
    const [old, all] = await Promise.all([world.send(number, 'GET', gone), world.send(number, 'GET', '/_all_dbs')])
    if (world.nowMs > startedMs + watchedMs) break
    if (deleted.status === 200 && old.status === 200) {
      findings.push(`node ${number} answered 200 for ${gone} after its start, which had been deleted while it was away`)
    }
    if (second.status === 201 && all.status === 200 && !all.body.includes(made.slice(1))) {
      findings.push(`node ${number} does not list ${made} after its start, which had been created while it was away`)
    }
    await world.sleep(pollMs)
  }
  await world.start(...absent)
  await world.ready()
  await getAtRest(world, through, '/_all_dbs')
  for (const path of [gone, made]) await world.send(through, 'DELETE', path)
  return findings
}
