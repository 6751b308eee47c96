/**
 * The cluster's metadata as a deterministic state machine: the same commands in the same order result in the same state
 * on every node. It uses no clock and no randomness; commands carry random values.
 */
import { compareRanges } from '@sectional/core'
import { activeReplicas, adminOnlySecurity, securityDigest } from './cluster-state.ts'
import type { ClusterState, DatabaseRecord, NodeRecord } from './cluster-state.ts'
import type { Command, CommandResult } from './commands.ts'
import { DatabaseMap } from './database-map.ts'
import { isLate, isOutdated, recordStart } from './node-start.ts'
import { extendDatabase, fillReplica, markFilling, placeShards, refillNode, removeFromDatabase } from './placement.ts'

/** Number of commands whose results are remembered, so that a command that was proposed twice is applied once. */
const recentCommands = 1024
const defaultLimit = 1000

/**
 * The state that the log builds: the part that the whole node may read, and the part that only the control plane needs.
 */
export interface ControlState extends ClusterState {
  /** Names of members whose disk is known to be lost, sorted. */
  readonly lost: readonly string[]
  readonly recent: readonly RecentCommand[]
}

export interface RecentCommand { readonly id: string; readonly result: CommandResult }

export interface Applied { readonly state: ControlState; readonly result: CommandResult }

type Of<Type extends Command['type']> = Extract<Command, { type: Type }>

const done: CommandResult = { kind: 'done' }
const missing: CommandResult = { kind: 'missing' }

export function initialState(clusterId: string): ControlState {
  return { clusterId, index: 0, nodes: {}, databases: DatabaseMap.from([]), settings: {}, lost: [], recent: [] }
}

/** Applies the command at log index `index`. */
export function applyCommand(before: ControlState, index: number, command: Command): Applied {
  const known = before.recent.find(({ id }) => id === command.id)
  if (known) return { state: { ...before, index }, result: known.result }
  const { state, result } = dispatch(before, index, command)
  const recent = [...before.recent.slice(1 - recentCommands), { id: command.id, result }]
  return { state: { ...state, index, recent }, result }
}

function dispatch(state: ControlState, index: number, command: Command): Applied {
  switch (command.type) {
    case 'create-database': return createDatabase(state, command)
    case 'delete-database': return deleteDatabase(state, command)
    case 'set-security': return setSecurity(state, command)
    case 'set-database-option': return changeDatabase(state, command, database => ({ ...database, ...command.option }))
    case 'set-setting': return setSetting(state, command)
    case 'admit-node': return admitNode(state, index, command)
    case 'forget-node': return forgetNode(state, index, command)
    case 'remove-node': return removeNode(state, command)
    case 'replica-filled': return replicaFilled(state, command)
    case 'replica-damaged': return replicaDamaged(state, command)
    case 'extend-databases': return extendDatabases(state, command)
  }
}

function createDatabase(
  state: ControlState, { name, incarnation, q, n, partitioned, seed }: Of<'create-database'>,
): Applied {
  const present = state.databases.get(name)
  if (present) return { state, result: present.incarnation === incarnation ? done : { kind: 'exists' } }
  const usable = usableMembers(state)
  if (Object.keys(usable).length === 0) {
    return { state, result: { kind: 'refused', reason: 'no member can hold a replica now' } }
  }
  const database: DatabaseRecord = {
    name, incarnation, partitioned, n, shards: placeShards(usable, { q, n, seed }),
    security: adminOnlySecurity, revsLimit: defaultLimit, purgedInfosLimit: defaultLimit, autoPurge: {},
  }
  return { state: withDatabase(state, database), result: done }
}

function deleteDatabase(state: ControlState, { name, incarnation }: Of<'delete-database'>): Applied {
  if (state.databases.get(name)?.incarnation !== incarnation) return { state, result: missing }
  return { state: { ...state, databases: DatabaseMap.of(state.databases).without(name) }, result: done }
}

function changeDatabase(
  state: ControlState, target: { readonly name: string; readonly incarnation: string },
  change: (database: DatabaseRecord) => DatabaseRecord,
): Applied {
  const database = state.databases.get(target.name)
  if (database?.incarnation !== target.incarnation) return { state, result: missing }
  return { state: withDatabase(state, change(database)), result: done }
}

function setSecurity(state: ControlState, command: Of<'set-security'>): Applied {
  const { name, incarnation, security, replaces } = command
  const database = state.databases.get(name)
  if (database?.incarnation === incarnation && replaces !== undefined
    && replaces !== securityDigest(database.security)) return { state, result: { kind: 'changed' } }
  return changeDatabase(state, command, before => ({ ...before, security }))
}

function setSetting(state: ControlState, { section, key, value }: Of<'set-setting'>): Applied {
  const { [`${section}/${key}`]: _before, ...others } = state.settings
  return {
    state: { ...state, settings: value === null ? others : { ...others, [`${section}/${key}`]: value } }, result: done,
  }
}

function admitNode(
  state: ControlState, index: number, { node, address, zone, fresh, start }: Of<'admit-node'>,
): Applied {
  const member = memberOf(state, node)
  if (!member && !fresh) {
    return {
      state,
      result: {
        kind: 'refused',
        reason: `${node} was removed from this cluster: empty its data directory to let it join as a new node`,
      },
    }
  }
  const holder = Object.values(state.nodes).find(other => other.address === address && other.name !== node)
  if (holder) return { state, result: { kind: 'refused', reason: `${address} is the address of ${holder.name}` } }
  if (isLate(member?.start, start)) return { state, result: { kind: 'later' } }
  // The node's data directory has lost entries, votes and documents that it had acknowledged. The leader asks the node
  // to give it up once the log no longer counts its vote.
  if (!fresh && isOutdated(member?.start, start)) {
    return { ...forgetNode(state, index, { type: 'forget-node', node, outdated: true }), result: { kind: 'later' } }
  }
  const recorded = start === undefined ? member?.start : recordStart(member?.start, start, index)
  const admitted = {
    ...withNode(state, { name: node, address, zone, ...recorded && { start: recorded } }),
    lost: state.lost.filter(name => name !== node),
  }
  // A node that comes with its disk still holds its replicas: those that were marked as filling when the disk seemed
  // lost keep the mark until anti-entropy has filled them.
  if (!member || !fresh) return { state: admitted, result: done }
  return { state: changeAll(admitted, database => refillNode(database, node)), result: done }
}

function forgetNode(
  state: ControlState, index: number, { node, outdated = false }: Omit<Of<'forget-node'>, 'id'>,
): Applied {
  const member = memberOf(state, node)
  if (!member) return { state, result: missing }
  const known = outdated && member.start?.id !== ''
    ? withNode(state, { ...member, start: recordStart(member.start, undefined, index) })
    : state
  if (known.lost.includes(node)) return { state: known, result: done }
  const lost = { ...known, lost: [...known.lost, node].sort() }
  return { state: changeAll(lost, database => refillNode(database, node)), result: done }
}

function removeNode(state: ControlState, { node }: Of<'remove-node'>): Applied {
  if (!memberOf(state, node)) return { state, result: missing }
  const { [node]: _removed, ...nodes } = state.nodes
  if (Object.keys(nodes).length === 0) {
    return { state, result: { kind: 'refused', reason: `${node} is the cluster's last node` } }
  }
  const without = { ...state, nodes, lost: state.lost.filter(name => name !== node) }
  const usable = usableMembers(without)
  return { state: changeAll(without, database => removeFromDatabase(usable, database, node)), result: done }
}

function replicaFilled(state: ControlState, { incarnation, range, node }: Of<'replica-filled'>): Applied {
  const database = DatabaseMap.withIncarnation(state.databases, incarnation)
  const replica = database?.shards.find(shard =>
    compareRanges(shard.range, range) === 0)?.replicas.find(candidate => candidate.node === node)
  if (!database || !replica || state.lost.includes(node)) return { state, result: missing }
  return { state: replica.filling ? withDatabase(state, fillReplica(database, range, node)) : state, result: done }
}

/**
 * Marks the replica as filling, unless no other replica of the shard counts. Other filling replicas do not count, and
 * the command does not wait for them: they may be waiting for the documents that are damaged here. Two filling replicas
 * push to each other what the other one lacks.
 */
function replicaDamaged(state: ControlState, { incarnation, range, node }: Of<'replica-damaged'>): Applied {
  const database = DatabaseMap.withIncarnation(state.databases, incarnation)
  const shard = database?.shards.find(candidate => compareRanges(candidate.range, range) === 0)
  const replica = shard?.replicas.find(candidate => candidate.node === node)
  if (!database || !shard || !replica) return { state, result: missing }
  if (replica.filling) return { state, result: done }
  if (activeReplicas(shard).length < 2) {
    return { state, result: { kind: 'refused', reason: 'no other replica of the shard counts' } }
  }
  return { state: withDatabase(state, markFilling(database, range, node)), result: done }
}

function extendDatabases(state: ControlState, { names }: Of<'extend-databases'>): Applied {
  const usable = usableMembers(state)
  let databases = DatabaseMap.of(state.databases)
  for (const name of names) {
    const database = databases.get(name)
    if (database) databases = databases.with(extendDatabase(usable, database))
  }
  return { state: { ...state, databases }, result: done }
}

/** Returns the member of that name, or undefined. */
export function memberOf(state: ClusterState, node: string): NodeRecord | undefined {
  return Object.hasOwn(state.nodes, node) ? state.nodes[node] : undefined
}

/** Returns the members that can hold replicas, which are those whose disk is not lost. */
export function usableMembers(state: ControlState): Readonly<Record<string, NodeRecord>> {
  return Object.fromEntries(Object.entries(state.nodes).filter(([node]) => !state.lost.includes(node)))
}

function withDatabase(state: ControlState, database: DatabaseRecord): ControlState {
  return { ...state, databases: DatabaseMap.of(state.databases).with(database) }
}

function withNode(state: ControlState, node: NodeRecord): ControlState {
  return { ...state, nodes: { ...state.nodes, [node.name]: node } }
}

function changeAll(state: ControlState, change: (database: DatabaseRecord) => DatabaseRecord): ControlState {
  return { ...state, databases: DatabaseMap.from(Array.from(state.databases.values(), change)) }
}
