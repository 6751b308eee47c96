/**
 * An exercise at the end of a run: a database of its own whose replicas receive random calls directly, as from
 * coordinators and peers, while single disks are slow or fail, nodes crash, and records are damaged. Models of the
 * replicas judge every answer (`models/`).
 */
import { documentStoreName, ShardKeys } from '@sectional/server'
import type { AttachmentRecord, DocumentEdit, Purge, ShardId, ShardReplica } from '@sectional/core'
import { ReplicaError, revisionHash, shardKey } from '@sectional/core'
import { readReplicas } from '../checkers/disk-contents.ts'
import { finalDatabase } from '../checkers/final-state.ts'
import type { Findings } from '../checkers/final-state.ts'
import { replicasEqual } from '../checkers/replicas-equal.ts'
import type { FaultyDisks } from '../faults/faulty-disks.ts'
import type { ModelledReplica } from '../models/modelled-replica.ts'
import { all } from '../models/portrait.ts'
import type { ReplicaWatch } from '../models/replica-watch.ts'
import type { Dice } from '../world/dice.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { World } from '../world/world.ts'
import { digestRound, suspendFor } from './digest-round.ts'
import { deleteAtRest } from './drill.ts'
import { ReplicaCalls } from './replica-calls.ts'

export interface ReplicaExerciseParts {
  readonly world: World
  readonly dice: Dice
  readonly disks: FaultyDisks
  readonly watch: ReplicaWatch
}

const database = 'exercise'
const foundMsMax = 120_000
const replicasMax = 3
const callsTogetherMax = 7
/** Longer than a slow write, so that calls are decided between two batches in flight. */
const pauseMsMax = 60
const restMs = 1000
/** Longer than the pause after which a replica looks at its disk again after a failed write. */
const recoveredMs = 8000
const failedWrites = 2
const waitMs = 30 * 60_000
const rebuiltMsMax = 30_000
const pollMs = 200
const equalMsMax = 120_000
const equalPollMs = 2000
const callMs = 60_000
/** A node sweeps for the first time 30 minutes after its start, and content is kept for 30 minutes. */
const beforeUploadMs = 18 * 60_000
const afterUploadMs = 18 * 60_000
const shortCallsMs = [20, 300]
/** A node sweeps for the first time 30 minutes after its start, and then each hour. */
const firstSweepMs = 31 * 60_000
/** Longer than content is kept because of its upload, and shorter than the time to the next sweep. */
const leaseMs = 40 * 60_000
/** Longer than the time from a deletion of a database to a sweep. */
const sweptMs = 120_000
const sweptContents = 40
const sweptSlowMs = 4000
const sweptReadMs = 100
/** `compaction/replaced_bytes` of the nodes. */
export const compactedBytesMin = 20_000
const compactions = 2
/** More documents than a replica reads one by one. */
const manyDocuments = 40
const rewrites = 3
const indexedReadMs = 300
const damagedIndex = 'an index is damaged'
const compactedEdits = 5
const bodyBytes = 6000
/** Longer than the time from a write to the compaction. */
const compactedMs = 35_000

export class ReplicaExercise {
  readonly #parts: ReplicaExerciseParts
  readonly #partitioned: boolean
  readonly #calls: ReplicaCalls
  #shard!: ShardId
  #hosts!: readonly SimulatedNode[]

  constructor(parts: ReplicaExerciseParts) {
    this.#parts = parts
    this.#partitioned = parts.dice.chance(0.4)
    this.#calls = new ReplicaCalls({
      dice: parts.dice.fork('calls'), partitioned: this.#partitioned,
      after: (ms, work) => { parts.world.queue.schedule(ms, 'caller cancels', work) },
    })
  }

  async run(): Promise<Findings> {
    const { dice } = this.#parts
    await this.#begin()
    await this.#bursts(dice.integer(2, 4))
    const steps = [() => this.#failedWrite(), () => this.#restart(), () => this.#rebuild()]
    if (dice.chance(0.5)) steps.push(() => this.#forgottenPurge())
    if (dice.chance(0.3)) steps.push(() => this.#lateDocument())
    if (dice.chance(0.3)) steps.push(() => this.#unreadable())
    if (!this.#partitioned && dice.chance(0.4)) steps.push(() => this.#rewrittenWhileIndexed())
    if (dice.chance(0.3)) steps.push(() => this.#sweptWrite())
    if (dice.chance(0.3)) steps.push(() => this.#compactedByItself())
    for (const step of dice.sample(steps, steps.length)) {
      const findings = await step()
      if (findings.length > 0) return findings
      await this.#bursts(1)
    }
    return this.#end()
  }

  async #begin(): Promise<void> {
    const { watch, world } = this.#parts
    const n = Math.min(replicasMax, world.nodes.length)
    const existing = world.nodes.flatMap(({ inside }) => [...inside!.control.state()!.databases.values()])
    watch.followNext(new Set(existing.map(({ incarnation }) => incarnation)), this.#partitioned)
    await world.eventually(`${database} to be created`, foundMsMax, async () => {
      const partitioned = this.#partitioned ? '&partitioned=true' : ''
      const { status } = await world.send(1, 'PUT', `/${database}?q=1&n=${n}${partitioned}`, {})
      return status === 201 || status === 202 || status === 412 ? null : `status ${status}`
    })
    await world.eventually(`${database} to be known`, foundMsMax, async () =>
      world.nodes.every(node => node.inside!.control.state()?.databases.has(database)) ? null : 'not yet')
    const { incarnation, shards: [shard] } = world.node(1).inside!.control.state()!.databases.get(database)!
    this.#shard = { incarnation, range: shard!.range }
    this.#hosts = world.nodes.filter(({ name }) => shard!.replicas.some(({ node }) => node === name))
    watch.follow(incarnation, this.#partitioned)
    // Calls store checkpoints and revisions with histories that nobody has.
    world.moments.falsified.add(shardKey(this.#shard))
    if (!this.#partitioned) await this.#write('_design/exercise', { views: { all: { map: mapFunction } } })
    for (const node of this.#hosts) await this.#replica(node)
    await this.#query()
  }

  /** Makes some groups of concurrent calls, of which some meet a disk that is slow or fails. */
  async #bursts(count: number): Promise<void> {
    const { dice, world } = this.#parts
    for (; count > 0; count--) {
      const node = dice.pick(this.#hosts)
      const trouble = this.#trouble(node)
      await this.#burst(node, trouble === 'slow writes' && dice.chance(0.6) ? dice.pick(shortCallsMs) : callMs)
      this.#calm(node)
      await world.sleep(dice.between(0, restMs))
      await (await this.#replica(node)).audit(dice)
    }
  }

  async #burst(node: SimulatedNode, timeoutMs: number): Promise<void> {
    const { dice, world } = this.#parts
    const replicas = new Map<SimulatedNode, ModelledReplica>()
    for (const each of this.#hosts) replicas.set(each, await this.#replica(each))
    const all = [...replicas.values()].map(({ shown }) => shown)
    this.#calls.focus()
    await Promise.all(Array.from({ length: dice.integer(1, callsTogetherMax) }, async () => {
      const target = dice.chance(0.7) ? node : dice.pick(this.#hosts)
      const pauseMs = dice.pick([0, 0, dice.between(0, 10), dice.between(0, pauseMsMax)])
      if (pauseMs > 0) await world.sleep(pauseMs)
      await this.#calls.one(replicas.get(target)!.shown, all, timeoutMs)
    }))
  }

  #trouble(node: SimulatedNode): string {
    const { dice, disks, world } = this.#parts
    const what = dice.weighted({
      nothing: 3, 'slow reads': 3, 'slow writes': 2, 'failing writes': 1, 'failing reads': 1,
    })!
    world.say(`exercise: ${what} on ${node.host}`)
    const trouble = disks.of(node)
    trouble.store = documentStoreName
    if (what === 'slow reads') trouble.slowReadsMs = dice.pick([5, 50])
    else if (what === 'slow writes') trouble.slowMs = dice.pick([20, 1500])
    else if (what === 'failing writes') trouble.failingWrites = dice.pick([0.3, 1])
    else if (what === 'failing reads') [trouble.failingReads, trouble.failingReadCode] = [dice.pick([0.1, 0.5]), 'io']
    return what
  }

  #calm(node: SimulatedNode): void {
    const trouble = this.#parts.disks.of(node)
    trouble.slowReadsMs = trouble.slowMs = trouble.failingWrites = trouble.failingReads = 0
    trouble.store = undefined
  }

  async #audit(): Promise<void> {
    const { dice } = this.#parts
    for (const node of this.#hosts) {
      await (await this.#replica(node)).audit(dice)
    }
  }

  /** A write fails, although it may be on the disk. Calls that wait for a change must learn of it soon. */
  async #failedWrite(): Promise<Findings> {
    const { dice, disks, world } = this.#parts
    const node = dice.pick(this.#hosts)
    // Changes that other replicas send would wake the call, too.
    await this.#converge()
    for (let attempt = 0; attempt < failedWrites; attempt++) {
      const modelled = await this.#replica(node)
      const { history, sequence } = await modelled.shown.upkeep.replicaInfo({ timeoutMs: callMs })
      modelled.shown.waitForChange({ history, sequence }, { timeoutMs: waitMs }).catch(() => {})
      const trouble = disks.of(node)
      trouble.store = documentStoreName
      trouble.failingWrites = 1
      const id = this.#id(`failed${dice.seed()}`)
      if (dice.chance(0.5)) await makeDocument(modelled.shown, { id })
      else await purge(modelled.shown, { uuid: `failed${dice.seed()}`, id, paths: [{ start: 1, ids: [dice.hash()] }] })
      this.#calm(node)
      await world.sleep(recoveredMs)
      const finding = await (await this.#replica(node)).overdueWait()
      if (finding !== null) return [finding]
    }
    return []
  }

  /** A node crashes or stops, perhaps during calls, and starts again. */
  async #restart(): Promise<Findings> {
    const { dice, world } = this.#parts
    const node = dice.pick(this.#hosts)
    const calls = dice.chance(0.5) ? this.#burst(node, callMs) : undefined
    if (calls !== undefined) await world.sleep(dice.between(0, 10))
    if (dice.chance(0.6)) world.crash(node.number)
    else await world.stop(node.number)
    // Calls of a process that has ended are never answered, and those that follow them may find no replica.
    calls?.catch(() => {})
    await world.start(node.number)
    await world.ready()
    await this.#audit()
    return []
  }

  /** A record is damaged. The replica is rebuilt from the others, and must lack nothing else in the meantime. */
  async #rebuild(): Promise<Findings> {
    const { dice, disks, watch, world } = this.#parts
    if (this.#hosts.length < 2) return []
    const node = dice.pick(this.#hosts)
    const modelled = await this.#replica(node)
    if (!await modelled.audit(dice)) return []
    const kinds = Map.groupBy(node.disk.entries(documentStoreName).filter(([key, value]) =>
      ShardKeys.prefixOf(key) === modelled.prefix && value.length > 0), ([key]) => ShardKeys.kindOf(key))
    const usable = [...kinds.keys()].filter(each => damagedKinds.has(each))
    if (usable.length === 0) return []
    const kind = dice.pick(usable)
    const [key, value] = dice.pick(kinds.get(kind)!)
    const changed = Uint8Array.from(value)
    changed[dice.integer(0, changed.length - 1)]! ^= 1 << dice.integer(0, 7)
    world.say(`exercise: a record of kind ${kind} on ${node.host} is damaged`)
    disks.noteDamage(node)
    watch.noteDamage(node, this.#shard)
    node.disk.damage(documentStoreName, key, changed)
    const endMs = world.nowMs + rebuiltMsMax
    while (world.nowMs < endMs && watch.on(node, this.#shard) === modelled) {
      await modelled.audit(dice)
      await this.#look(node)
      await world.sleep(pollMs)
    }
    // Only a scrub reads some records, such as bodies of replaced revisions, and runs without such faults have none.
    const found = node.disk.value(documentStoreName, key)
    if (found !== undefined && Buffer.compare(found, changed) === 0) node.disk.damage(documentStoreName, key, value)
    await (await this.#replica(node)).audit(dice)
    await this.#write(this.#id(`rebuilt${dice.seed()}`), { value: 1 })
    return []
  }

  /** A document is purged, and the purge is soon forgotten. Readers that have not read it must learn of that. */
  async #forgottenPurge(): Promise<Findings> {
    const { dice } = this.#parts
    await this.#audit()
    const replicas = await Promise.all(this.#hosts.map(async node => (await this.#replica(node)).shown))
    const [first] = replicas
    const [document] = dice.sample(await documentsOf(first!), 1)
    if (document === undefined) return []
    const trees = await Promise.all(replicas.map(async replica =>
      (await replica.openDocument({ id: document, body: false, tree: true }, { timeoutMs: callMs }))?.tree ?? []))
    const purge = { uuid: `forgotten${dice.seed()}`, id: document, paths: trees.flat().map(({ path }) => path) }
    await Promise.all(replicas.map(async replica => {
      try {
        await replica.purgeDocuments({ purges: [purge] }, { timeoutMs: callMs })
        const { purgeSequence } = await replica.upkeep.replicaInfo({ timeoutMs: callMs })
        await replica.trimPurges(purgeSequence, { timeoutMs: callMs })
      } catch (error) {
        if (!(error instanceof ReplicaError)) throw error
      }
    }))
    await this.#audit()
    return []
  }

  /** Content is uploaded, and the document that names it comes late, after a sweep of the node. */
  async #lateDocument(): Promise<Findings> {
    const { dice, world } = this.#parts
    const node = dice.pick(this.#hosts)
    await world.stop(node.number)
    await world.start(node.number)
    await suspendFor(world, beforeUploadMs)
    const bytes = Buffer.from(`content ${dice.seed()}`)
    const { shown } = await this.#replica(node)
    const { hash, length } = await shown.blobs.writeBlob(pieces(bytes), { timeoutMs: callMs })
    await suspendFor(world, afterUploadMs)
    const document = { id: this.#id(`late${dice.seed()}`), attachments: [attachmentOf(hash, length)] }
    await makeDocument((await this.#replica(node)).shown, document)
    return []
  }

  /** The disk cannot be read when a call with many documents begins. The call fails, and nothing else does. */
  async #unreadable(): Promise<Findings> {
    const { dice, disks, world } = this.#parts
    const node = dice.pick(this.#hosts)
    await world.stop(node.number)
    await world.start(node.number)
    await world.ready()
    const { shown } = await this.#replica(node)
    await makeDocument(shown, { id: this.#id(`before${dice.seed()}`) })
    Object.assign(disks.of(node), { failingReads: 1, failingReadCode: 'io' })
    const edits = Array.from({ length: manyDocuments }, (_, index) => editOf(this.#id(`unread${dice.seed()}${index}`)))
    await shown.updateDocuments({ edits, revsLimit: 1000 }, { timeoutMs: callMs }).catch(() => {})
    this.#calm(node)
    return []
  }

  /** A document is purged and written again, and once more while an index reads the changes. */
  async #rewrittenWhileIndexed(): Promise<Findings> {
    const { dice, disks, world } = this.#parts
    const node = dice.pick(this.#hosts)
    const { shown } = await this.#replica(node)
    const id = `rewritten${dice.seed()}`
    const write = async (): Promise<void> => {
      const opened = await shown.openDocument({ id, body: false, tree: false }, { timeoutMs: callMs })
      await makeDocument(shown, { id }, opened?.leaves[0]?.revision ?? null, `${dice.seed()}`)
    }
    await write()
    const damages: string[] = []
    const onLog: Parameters<typeof world.onLog.add>[0] = ({ name }, _level, text) => {
      if (text.startsWith(damagedIndex)) damages.push(`${name} said, although no fault has damaged an index: ${text}`)
    }
    world.onLog.add(onLog)
    for (let attempt = 0; attempt < rewrites; attempt++) {
      await this.#converge()
      const findings = await this.#query()
      if (findings.length > 0) return findings
      Object.assign(disks.of(node), { store: documentStoreName, slowReadsMs: indexedReadMs })
      const tree = (await shown.openDocument({ id, body: false, tree: true }, { timeoutMs: callMs }))?.tree ?? []
      await purge(shown, { uuid: `rewritten${dice.seed()}`, id, paths: tree.map(({ path }) => path) })
      await write()
      const queried = world.send(node.number, 'GET', `/${database}/_design/exercise/_view/all`)
      await world.sleep(dice.between(0, indexedReadMs / 2))
      await write()
      await queried
      this.#calm(node)
    }
    world.onLog.delete(onLog)
    return disks.damagedIndexes === 0 ? damages : []
  }

  /** Unused content is removed while a write that names it is on its way to the disk. */
  async #sweptWrite(): Promise<Findings> {
    const { dice, disks, world } = this.#parts
    const node = dice.pick(this.#hosts)
    await world.stop(node.number)
    await world.start(node.number)
    await suspendFor(world, firstSweepMs)
    const { blobs } = (await this.#replica(node)).shown
    const attached: AttachmentRecord[] = []
    for (let count = 0; count < sweptContents; count++) {
      const { hash, length } = await blobs.writeBlob(pieces(Buffer.from(`swept ${dice.seed()}`)), { timeoutMs: callMs })
      attached.push(attachmentOf(hash, length))
    }
    await suspendFor(world, leaseMs)
    // The node sweeps some time after a database is gone.
    const path = `/swept${dice.seed()}`
    await world.send(node.number, 'PUT', `${path}?q=1&n=${world.nodes.length}`)
    await world.send(node.number, 'DELETE', path)
    const { shown } = await this.#replica(node)
    // A sweep takes some time, and begins after the writes that are on their way then.
    Object.assign(disks.of(node), { store: documentStoreName, slowMs: sweptSlowMs, slowReadsMs: sweptReadMs })
    await Promise.all(attached.map(async (attachment, index) => {
      await world.sleep((index + 1) * sweptMs / sweptContents)
      await makeDocument(shown, { id: this.#id(`swept${dice.seed()}`), attachments: [attachment] })
    }))
    this.#calm(node)
    return []
  }

  /** Many bodies are replaced, and the replica removes them by itself, each time. */
  async #compactedByItself(): Promise<Findings> {
    const { dice, world } = this.#parts
    const node = dice.pick(this.#hosts)
    const id = this.#id(`compacted${dice.seed()}`)
    for (let round = 0; round < compactions; round++) {
      const { shown } = await this.#replica(node)
      for (let edits = 0; edits < compactedEdits; edits++) {
        const opened = await shown.openDocument({ id, body: false, tree: false }, { timeoutMs: callMs })
        await makeDocument(shown, { id }, opened?.leaves[0]?.revision ?? null, 'x'.repeat(bodyBytes))
      }
      await world.sleep(compactedMs)
      const { compactedBytes } = await this.#replica(node)
      if (compactedBytes >= compactedBytesMin) {
        return [`${node.name} keeps ${compactedBytes} bytes of replaced bodies ${compactedMs} ms after the last write`]
      }
    }
    return []
  }

  /** The replicas become equal, and their views follow from their documents. The database is deleted. */
  async #end(): Promise<Findings> {
    const { watch, world } = this.#parts
    await this.#converge()
    await this.#audit()
    const findings = [...await this.#differences(), ...await this.#query()]
    watch.unfollow(this.#shard.incarnation)
    await deleteAtRest(world, 1, `/${database}`)
    await world.sleep(recoveredMs)
    return findings
  }

  /** Calls name limits of revisions and histories of their own, so replicas may differ until digests are compared. */
  async #converge(): Promise<void> {
    const { world } = this.#parts
    if ((await this.#differences()).length > 0) {
      await digestRound(world, async () => (await this.#currentDifferences()).length === 0)
    }
    await world.converge(database)
  }

  /** Returns differences of the replicas that do not disappear, and what is inconsistent in single ones. */
  async #differences(): Promise<Findings> {
    const { world } = this.#parts
    const endMs = world.nowMs + equalMsMax
    for (;;) {
      const findings = await this.#currentDifferences()
      if (findings.length === 0 || world.nowMs > endMs) return findings
      await world.sleep(equalPollMs)
    }
  }

  async #currentDifferences(): Promise<Findings> {
    const { world } = this.#parts
    // Only leaves are compared: revisions were stored with a part of their ancestry.
    const record = { ...world.node(1).inside!.control.state()!.databases.get(database)!, revsLimit: 1 }
    const final = finalDatabase(record, await readReplicas(world.nodes, record))
    return replicasEqual({ databases: new Map([[database, final]]) })
  }

  /** Returns a difference between a view, as each node shows it, and the documents. */
  async #query(): Promise<Findings> {
    const { world } = this.#parts
    if (this.#partitioned) return []
    const { body: { rows } } = await world.send(1, 'GET', `/${database}/_all_docs?include_docs=true`)
    const expected = (rows as readonly any[] ?? []).filter(({ id }) => !id.startsWith('_design/'))
      .map(({ doc, id }) => `${id} ${doc.value ?? null}`).sort().join(', ')
    const findings: string[] = []
    for (const { number } of world.nodes) {
      const { body, status } = await world.send(number, 'GET', `/${database}/_design/exercise/_view/all`)
      const shown: readonly any[] = body?.rows ?? []
      const found = shown.map(({ id, key }) => `${id} ${key}`).sort().join(', ')
      if (status === 200 && found === expected && body.total_rows === shown.length) continue
      findings.push(`the view through node ${number} is answered ${status} with ${found} of ${body?.total_rows} rows, `
        + `not ${expected}`)
    }
    return findings
  }

  async #write(id: string, document: object): Promise<void> {
    await this.#parts.world.write(this.#parts.dice.pick(this.#parts.world.nodes).number, database, id, document)
  }

  /** Returns the model of the replica on a node as soon as the node uses it. */
  async #replica(node: SimulatedNode): Promise<ModelledReplica> {
    const { watch, world } = this.#parts
    await this.#look(node)
    await world.eventually(`the replica of ${database} on ${node.name}`, foundMsMax, async () => {
      if (watch.on(node, this.#shard) !== undefined) return null
      await this.#look(node)
      return 'it is not used'
    })
    return watch.on(node, this.#shard)!
  }

  /** Makes the node look up its replica, which may be another one than before. */
  async #look(node: SimulatedNode): Promise<void> {
    await this.#parts.world.send(node.number, 'GET', `/_node/_local/_replicas/${database}`)
  }

  #id(name: string): string {
    return this.#partitioned ? `s:${name}` : name
  }
}

const mapFunction = 'function (doc) { emit(doc.value, null) }'
/** Kinds of records that every read of a replica meets. */
const damagedKinds: ReadonlySet<string> = new Set(['i', 'b', 'l', 'q', 'p', 's'])

function attachmentOf(blob: string, length: number): AttachmentRecord {
  return {
    name: 'late', contentType: 'text/plain', revpos: 1, digest: 'AAAAAAAAAAAAAAAAAAAAAA==', blob, length,
    encoding: 'identity', storedLength: length,
  }
}

function editOf(id: string): DocumentEdit {
  const made = { parent: null, deleted: false, body: Buffer.from('{}') }
  return { ...made, id, revisionHash: revisionHash(made) }
}

async function purge(replica: ShardReplica, each: Purge): Promise<void> {
  await replica.purgeDocuments({ purges: [each] }, { timeoutMs: callMs }).catch(() => {})
}

async function makeDocument(
  replica: ShardReplica, { id, attachments }: Pick<DocumentEdit, 'id' | 'attachments'>, parent: string | null = null,
  pad?: string,
): Promise<void> {
  const made = { parent, deleted: false, body: Buffer.from(pad === undefined ? '{}' : JSON.stringify({ pad })) }
  const edit = { ...made, id, revisionHash: revisionHash(made), ...(attachments && { attachments }) }
  const call = replica.updateDocuments({ edits: [edit], revsLimit: 1000, force: true }, { timeoutMs: callMs })
  await call.catch(() => {})
}

async function documentsOf(replica: ShardReplica): Promise<readonly string[]> {
  const scan = { descending: false, body: false, leaves: false }
  const rows = await all(replica.scanDocuments(scan, { timeoutMs: callMs }))
  return rows.map(({ id }) => id).filter(id => !id.startsWith('_design/'))
}

async function* pieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
