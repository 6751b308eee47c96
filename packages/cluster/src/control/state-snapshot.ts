/**
 * Encodes the control plane's state as bytes for the log's snapshots. The format is lines of JSON. The first line holds
 * everything but the databases, and the names of the nodes in order; each further line holds one database. Encoding and
 * decoding work in slices, so that the event loop is blocked for milliseconds only, however many databases there are.
 * Snapshots of version 1 were one JSON object; they can still be decoded.
 */
import type { DatabaseRecord, ReplicaRecord } from './cluster-state.ts'
import { DatabaseMap } from './database-map.ts'
import type { ControlState } from './state-machine.ts'

const snapshotVersion = 2
/** Databases that are encoded or decoded in one turn of the event loop. */
const sliceDatabases = 250
const lineFeed = 0x0a

/** Gives up the event loop once, so that other work of the node can run. */
export type Pause = () => Promise<void>

interface SnapshotHead extends Omit<ControlState, 'databases'> {
  readonly version: number
  readonly names: readonly string[]
}

/** Each shard is encoded as begin, end and one number per replica: 2 * position in `names`, plus 1 while filling. */
type EncodedDatabase = Omit<DatabaseRecord, 'shards'> & { readonly shards: readonly (readonly number[])[] }

/** Returns the bytes of the state. The node's state may have changed by the time that they are ready. */
export async function encodeState(state: ControlState, pause: Pause): Promise<Uint8Array> {
  const { databases, ...rest } = state
  const names = Object.keys(state.nodes).sort()
  const positions = new Map(names.map((name, at) => [name, at]))
  const parts = [Buffer.from(
    `${JSON.stringify({ ...rest, version: snapshotVersion, names } satisfies SnapshotHead)}\n`,
  )]
  let lines = ''
  let count = 0
  for (const database of databases.values()) {
    lines += `${JSON.stringify(encodeDatabase(database, positions))}\n`
    count += 1
    if (count % sliceDatabases !== 0) continue
    parts.push(Buffer.from(lines))
    lines = ''
    await pause()
  }
  parts.push(Buffer.from(lines))
  const bytes = Buffer.concat(parts)
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length)
}

/**
 * @param before the state that this one replaces. Databases that did not change stay the same objects, so that
 *   listeners find only the changed ones.
 * @throws Error when the bytes are not a snapshot of a known version
 */
export async function decodeState(bytes: Uint8Array, before: ControlState, pause: Pause): Promise<ControlState> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const headEnd = text.indexOf(lineFeed)
  const { version, names, databases: whole, ...rest } = JSON.parse(text.toString('utf8', 0, headEnd < 0
    ? text.length
    : headEnd)) as SnapshotHead & { readonly databases?: readonly EncodedDatabase[] }
  if (version !== 1 && version !== snapshotVersion) {
    throw new Error(
      `cluster metadata snapshot of version ${version}: this program knows versions 1 and ${snapshotVersion}`,
    )
  }
  const encoded = version === 1 ? whole ?? [] : databaseLines(text, headEnd + 1)
  const changed: DatabaseRecord[] = []
  const present = new Set<string>()
  for (const each of encoded) {
    const database = decodeDatabase(each, names)
    present.add(database.name)
    const known = before.databases.get(database.name)
    if (known === undefined || !isSame(known, database)) changed.push(database)
    if (present.size % sliceDatabases === 0) await pause()
  }
  if (before.databases.size === 0) return { ...rest, databases: DatabaseMap.from(changed) }
  let databases = DatabaseMap.of(before.databases)
  for (const [at, database] of changed.entries()) {
    databases = databases.with(database)
    if (at % sliceDatabases === 0) await pause()
  }
  for (const name of before.databases.keys()) if (!present.has(name)) databases = databases.without(name)
  return { ...rest, databases }
}

function* databaseLines(text: Buffer, from: number): Generator<EncodedDatabase> {
  for (let begin =
    from, end = text.indexOf(lineFeed, begin); end >= 0; begin = end + 1, end = text.indexOf(lineFeed, begin)) {
    yield JSON.parse(text.toString('utf8', begin, end)) as EncodedDatabase
  }
}

function encodeDatabase(database: DatabaseRecord, positions: ReadonlyMap<string, number>): EncodedDatabase {
  const encodeReplica = ({ node, filling }: ReplicaRecord): number => {
    const at = positions.get(node)
    if (at === undefined) throw new Error(`a replica is placed on ${node}, which is not a member`)
    return 2 * at + (filling ? 1 : 0)
  }
  return {
    ...database,
    shards: database.shards.map(({ range, replicas }) => [range.begin, range.end, ...replicas.map(encodeReplica)]),
  }
}

function decodeDatabase(database: EncodedDatabase, names: readonly string[]): DatabaseRecord {
  const decodeReplica = (code: number): ReplicaRecord => {
    const node = names[code >> 1]
    if (node === undefined) throw new Error('cluster metadata snapshot: a replica on an unknown node')
    return { node, filling: (code & 1) === 1 }
  }
  return {
    ...database,
    shards: database.shards.map(([begin = 0, end = 0, ...codes]) => ({
      range: { begin, end }, replicas: codes.map(decodeReplica),
    })),
  }
}

function isSame(one: DatabaseRecord, other: DatabaseRecord): boolean {
  return one.incarnation === other.incarnation && JSON.stringify(one) === JSON.stringify(other)
}
