import { ApiError } from '@sectional/core'
import { activeReplicas, majority } from '@sectional/server'
import type { ClusterState } from '@sectional/server'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { Fault, FaultContext } from './fault.ts'
import { isOnlySeed } from './process-faults.ts'

/** Milliseconds between two attempts of the administrator to remove a member. */
const attemptPauseMs = 500
const attemptMs = 10_000
const leaderShare = 0.4
const crashedShare = 0.4
const replicasMin = 3

/**
 * Removes a member by `ControlPlane.removeNode`, which no request or command of this version calls. It is running or
 * crashed, and may be the leader. Its disk is emptied, and it joins as a new member when the fault ends. The cluster
 * must be able to survive this: it needs three filled replicas of every shard, clients that wait for two disks, and a
 * majority of seeds that stay members, so that seeds with empty disks do not form a cluster of their own.
 */
export function leave(context: FaultContext): Fault | undefined {
  const { dice, disks, options, supervisor, world } = context
  if (options.w === 1 || options.founders < replicasMin || options.databases.some(({ n }) => n < replicasMin)) {
    return undefined
  }
  const candidates = world.nodes.filter(node => node.inside !== undefined && !node.paused && !node.stopping)
  if (candidates.length === 0) return undefined
  const leader = world.leader(candidates)
  const node = leader !== undefined && dice.chance(leaderShare) ? leader : dice.pick(candidates)
  const dies = dice.chance(crashedShare)
  const isSafe = supervisor.leaving === 0 && disks.damagedDisks === 0 && !isOnlySeed(context, node)
  if (!isSafe || !survivesLoss(world.nodes, options.founders, node)) return undefined
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
 * Returns whether the cluster survives the removal: all members run and have the same state, a majority of the seeds
 * stays, every shard has enough replicas that count, and no replica is being filled.
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

/** Asks other nodes until one of them confirms that the node is not a member. */
async function removed({ dice, world }: FaultContext, node: SimulatedNode): Promise<void> {
  for (;;) {
    const others = world.nodes.filter(other =>
      other !== node && other.inside !== undefined && !other.paused && !other.stopping)
    // A node that crashes in the meantime never answers.
    if (others.length > 0
      && await Promise.race([isRemoved(dice.pick(others), node.name), world.sleep(attemptMs).then(() => false)])) {
      return
    }
    await world.sleep(attemptPauseMs)
  }
}

/** Returns true when the node is certainly not a member any more, false when that is unknown. */
export async function isRemoved(through: SimulatedNode, name: string): Promise<boolean> {
  try {
    await through.inside!.control.removeNode(name)
    return true
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return error.error === 'not_found'
  }
}
