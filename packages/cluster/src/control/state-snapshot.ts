/** The control plane's state as bytes, for the log's snapshots: JSON with node names written once. */
import type { DatabaseRecord, ReplicaRecord } from './cluster-state.ts'
import { DatabaseMap } from './database-map.ts'
import type { ControlState } from './state-machine.ts'

const snapshotVersion = 1

interface EncodedSnapshot extends Omit<ControlState, 'databases'> {
  readonly version: number
  readonly names: readonly string[]
  readonly databases: readonly EncodedDatabase[]
}

/** Each shard: begin, end, then 2 * position in `names` + 1 while filling, for each replica. */
type EncodedDatabase = Omit<DatabaseRecord, 'shards'> & { readonly shards: readonly (readonly number[])[] }

export function encodeState(state: ControlState): Uint8Array {
  const names = Object.keys(state.nodes).sort()
  const positions = new Map(names.map((name, at) => [name, at]))
  const encodeReplica = ({ node, filling }: ReplicaRecord): number => {
    const at = positions.get(node)
    if (at === undefined) throw new Error(`a replica lies on ${node}, which is no member`)
    return 2 * at + (filling ? 1 : 0)
  }
  const databases = [...state.databases.values()].map(database => ({
    ...database, shards: database.shards.map(({ range, replicas }) => [range.begin, range.end, ...replicas.map(encodeReplica)]),
  }))
  const encoded: EncodedSnapshot = { ...state, version: snapshotVersion, names, databases }
  return new TextEncoder().encode(JSON.stringify(encoded))
}

/** @throws Error when the bytes are no snapshot of a version that this code knows */
export function decodeState(bytes: Uint8Array): ControlState {
  const { version, names, databases, ...rest } = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as EncodedSnapshot
  if (version !== snapshotVersion) throw new Error(`cluster metadata snapshot of version ${version}: this program knows version ${snapshotVersion}`)
  const decodeReplica = (code: number): ReplicaRecord => {
    const node = names[code >> 1]
    if (node === undefined) throw new Error('cluster metadata snapshot: a replica on an unknown node')
    return { node, filling: (code & 1) === 1 }
  }
  const decoded = databases.map((database): DatabaseRecord => ({
    ...database, shards: database.shards.map(([begin = 0, end = 0, ...codes]) => ({ range: { begin, end }, replicas: codes.map(decodeReplica) })),
  }))
  return { ...rest, databases: DatabaseMap.from(decoded) }
}
