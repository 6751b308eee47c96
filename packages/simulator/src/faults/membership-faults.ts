import { ApiError } from '@sectional/core'
import { activeReplicas, majority } from '@sectional/server'
import type { ClusterState } from '@sectional/server'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { Fault, FaultContext } from './fault.ts'

/** Between two attempts of the administrator to have a member removed. */
const attemptPauseMs = 500
const attemptMs = 10_000
const leaderShare = 0.4
const crashedShare = 0.4
const replicasMin = 3

/**
 * An administrator takes a member out of the cluster, alive or dead, the leader too; its disk is emptied, and it joins
 * anew when the fault ends. Only where that can be survived: three full replicas of everything, clients that wait for
 * two disks, and seeds enough that those among them whose disks are empty do not found a cluster of their own.
 */
export function leave(context: FaultContext): Fault | undefined {
  const { dice, disks, options, supervisor, world } = context
  if (options.w === 1 || options.founders < replicasMin || options.databases.some(({ n }) => n < replicasMin)) {
    return undefined
  }
  const candidates = world.nodes.filter(node => node.inside !== undefined && !node.paused && !node.stopping)
  if (candidates.length === 0) return undefined
  const leader = candidates.find(node => node.inside?.control.leader() === node.name)
  const node = leader !== undefined && dice.chance(leaderShare) ? leader : dice.pick(candidates)
  const dies = dice.chance(crashedShare)
  if (supervisor.leaving > 0 || disks.damagedDisks > 0 || !survivesLoss(world.nodes, options.founders, node)) {
    return undefined
  }
  let over = false
  let left = false
  return {
    begin: () => {
      world.say(`node ${node.number} is to leave${node === leader ? ' (it leads)' : ''}`)
      disks.loseLater(node)
      if (dies) {
        supervisor.keepDown(node)
        world.crash(node.number)
      }
      void supervisor.whileLeaving(node, async () => {
        await removed(context, node)
        supervisor.keepDown(node)
        world.crash(node.number)
        disks.lose(node)
        left = true
        if (over) supervisor.up(node)
      })
    },
    end: () => {
      over = true
      if (left) supervisor.up(node)
    },
  }
}

/**
 * All members run and know the same, most seeds stay members, every shard has replicas enough that count, and none is
 * being filled.
 */
function survivesLoss(nodes: readonly SimulatedNode[], founders: number, leaver: SimulatedNode): boolean {
  const state: ClusterState | null = leaver.inside?.control.state() ?? null
  if (state === null || state.nodes[leaver.name] === undefined) return false
  const members = nodes.filter(node => state.nodes[node.name] !== undefined)
  const staying = members.filter(node => node !== leaver && node.number <= founders)
  if (founders - staying.length >= majority(founders)) return false
  if (members.some(node => node.inside?.control.state()?.index !== state.index)) return false
  return [...state.databases.values()].every(({ shards }) =>
    shards.every(shard =>
      activeReplicas(shard).length >= replicasMin && shard.replicas.every(({ filling }) => !filling)))
}

/** Asks other nodes until one of them says that the node is no member any more. */
async function removed({ dice, world }: FaultContext, node: SimulatedNode): Promise<void> {
  for (;;) {
    const others = world.nodes.filter(other =>
      other !== node && other.inside !== undefined && !other.paused && !other.stopping)
    // Who dies meanwhile never answers.
    if (others.length > 0
      && await Promise.race([isRemoved(dice.pick(others), node.name), world.sleep(attemptMs).then(() => false)])) {
      return
    }
    await world.sleep(attemptPauseMs)
  }
}

/** False: nobody knows. */
async function isRemoved(through: SimulatedNode, name: string): Promise<boolean> {
  try {
    await through.inside!.control.removeNode(name)
    return true
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return error.error === 'not_found'
  }
}
