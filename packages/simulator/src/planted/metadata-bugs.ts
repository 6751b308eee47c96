import { createHash } from 'node:crypto'
import { ApiError } from '@sectional/core'
import type { RaftMessage } from '@sectional/core'
import type { ClusterState, ControlPlane, DatabaseRecord, ShardRecord } from '@sectional/server'
import { everyNth, withChanges, withRaftMessages } from './planted-bug.ts'
import type { PlantedBug } from './planted-bug.ts'

export const metadataBugs: readonly PlantedBug[] = [
  {
    name: 'two-leaders',
    does: 'a vote that was refused counts as granted, so that a term can have two leaders',
    caughtBy: ['consensus-rules', 'metadata-log', 'fatal', 'converge', 'scenario'],
    scenario: 'the leader of the metadata log is cut off: the others elect one and go on',
    plant: () => () => withRaftMessages(grantedVote),
  },
  {
    name: 'altered-entry',
    does: 'a follower receives one entry in ten of the metadata log without its command',
    caughtBy: ['consensus-rules', 'metadata-log', 'converge'],
    plant: () => () => {
      const alters = everyNth(10)
      return withRaftMessages(message => emptied(message, alters))
    },
  },
  {
    name: 'reused-incarnation',
    does: 'a database that is created again gets the incarnation, and so the key prefix, of the previous one',
    caughtBy: ['metadata-log', 'one-success', 'deleted-stays', 'acknowledged-kept', 'fresh-reads'],
    plant: () => () => {
      let name: string | null = null
      return {
        runtime: runtime => ({
          ...runtime,
          random: withChanges(runtime.random, {
            bytes: length => {
              const bytes = runtime.random.bytes(length)
              const of = name
              name = null
              return of === null ? bytes : new Uint8Array(createHash('sha256').update(of).digest().subarray(0, length))
            },
          }),
        }),
        seams: {
          control: control => withChanges(control, {
            createDatabase: (wanted, options) => {
              name = wanted
              return control.createDatabase(wanted, options)
            },
          }),
        },
      }
    },
  },
  {
    name: 'second-admission',
    does: 'the creation of a database that exists is answered as successful',
    caughtBy: ['metadata-log', 'database-names', 'scenario'],
    scenario: 'two nodes create one name at the same instant: one of them does',
    plant: () => () => ({
      seams: {
        control: control => withChanges(control, {
          createDatabase: async (name, options) => {
            try {
              return await control.createDatabase(name, options)
            } catch (error) {
              const known = control.state()?.databases.get(name)
              if (error instanceof ApiError && error.error === 'file_exists' && known !== undefined) return known
              throw error
            }
          },
        }),
      },
    }),
  },
  {
    name: 'forgotten-intent',
    does: 'while there is no leader, the deletion of a database is accepted, but forgotten',
    caughtBy: ['deleted-stays'],
    plant: () => () => ({
      seams: {
        control: control => withChanges(control, {
          deleteDatabase: name =>
            control.leader() === null ? Promise.resolve('accepted' as const) : control.deleteDatabase(name),
        }),
      },
    }),
  },
  {
    name: 'absent-without-asking',
    does: 'a node says that a database does not exist without asking the leader',
    caughtBy: ['no-false-absence', 'converge'],
    plant: () => () => ({
      seams: {
        control: control => withChanges(control, {
          confirmAbsent: async name => control.state()?.databases.get(name),
        }),
      },
    }),
  },
  {
    name: 'filling-counts',
    does: 'quorums count replicas that are still being filled',
    caughtBy: ['fresh-reads', 'scenario', 'durable-acknowledgement'],
    scenario: 'a replica that is being filled counts towards no quorum',
    plant: () => () => ({
      seams: { control: control => withRecords(
        control, shard => ({ ...shard, replicas: shard.replicas.map(replica => ({ ...replica, filling: false })) }),
      ) },
    }),
  },
  {
    name: 'own-decider',
    does: 'each node lets its own replica decide edits',
    caughtBy: ['one-branch', 'update-rows', 'scenario'],
    plant: () => node => ({
      seams: {
        control: control => withRecords(control, shard => ({
          ...shard, replicas: [...shard.replicas].sort((a, b) => Number(b.node === node) - Number(a.node === node)),
        })),
      },
    }),
  },
]

function grantedVote(message: RaftMessage): RaftMessage {
  return message.type === 'vote-reply' ? { ...message, granted: true } : message
}

function emptied(message: RaftMessage, alters: () => boolean): RaftMessage {
  if (message.type !== 'append') return message
  return {
    ...message,
    entries: message.entries.map(entry =>
      entry.kind === 'command' && alters() ? { ...entry, kind: 'noop', payload: new Uint8Array(0) } : entry),
  }
}

/**
 * Returns the control plane with changed shard records. One state always gives the same object, because the coordinator
 * caches by identity.
 */
function withRecords(control: ControlPlane, change: (shard: ShardRecord) => ShardRecord): ControlPlane {
  const changedRecords = new WeakMap<DatabaseRecord, DatabaseRecord>()
  const changedStates = new WeakMap<ClusterState, ClusterState>()
  const record = (original: DatabaseRecord): DatabaseRecord => {
    const changed = changedRecords.get(original) ?? { ...original, shards: original.shards.map(change) }
    changedRecords.set(original, changed)
    return changed
  }
  return withChanges(control, {
    state: () => {
      const original = control.state()
      if (original === null) return null
      const changed = changedStates.get(original)
        ?? { ...original, databases: new Map([...original.databases].map(([name, each]) => [name, record(each)])) }
      changedStates.set(original, changed)
      return changed
    },
    confirmAbsent: async name => {
      const found = await control.confirmAbsent(name)
      return found && record(found)
    },
  })
}
