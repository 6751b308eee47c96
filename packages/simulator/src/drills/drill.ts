/**
 * A drill is a short fault at the end of a run, when the cluster is at rest and nothing else disturbs it. Guarantees
 * that hold only while all other nodes can be reached are hard to judge during overlapping faults, and certain in a
 * drill.
 */
import type { DocumentRevision } from '@sectional/core'
import { activeReplicas } from '@sectional/server'
import type { FinalDatabase, Findings } from '../checkers/final-state.ts'
import type { FaultyDisks } from '../faults/faulty-disks.ts'
import type { Answer } from '../world/answer.ts'
import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'

export interface DrillContext {
  readonly world: World
  readonly dice: Dice
  readonly disks: FaultyDisks
  /** A database with three replicas of each range, of which one may be away. */
  readonly database: string
  /** The node that the fault concerns. */
  readonly number: number
  /** The other nodes. */
  readonly others: readonly number[]
}

export type Drill = (context: DrillContext) => Promise<Findings>

const replicasMin = 3
/** Documents of a drill. */
const documents = 4
const pollMs = 10
const reachableMsMax = 60_000

/** Returns whether the database stays fully available while one node is away. */
export function sparesOneNode({ record }: FinalDatabase): boolean {
  return record.shards.every(shard => activeReplicas(shard).length >= replicasMin)
}

/** Returns a new branch of a document, as a replicator sends it. */
export function randomRevision(dice: Dice, id: string): DocumentRevision {
  const body = new Uint8Array(Buffer.from(JSON.stringify({ drill: dice.seed() })))
  return { id, path: { start: 1, ids: [dice.hash()] }, deleted: false, body }
}

/** A document of which a client has made a second revision while a node was away. */
export interface EditedDocument {
  readonly id: string
  readonly firstRevision: string
  readonly lastRevision: string
}

/** The documents of one drill: made before the fault, and edited during it through nodes that it does not concern. */
export class DrillDocuments {
  readonly #context: DrillContext
  readonly #firstRevisions = new Map<string, string>()

  constructor(context: DrillContext) {
    this.#context = context
  }

  async make(): Promise<void> {
    const { database, dice, world } = this.#context
    for (let count = 0; count < documents; count++) {
      // The id has the form that partitioned databases require.
      const id = `drill:${dice.seed()}`
      const { status, body } = await world.write(this.#other(), database, id, { drill: 1 })
      if (status === 201) this.#firstRevisions.set(id, body.rev)
    }
  }

  /** Edits the documents. Returns those whose edit a majority has confirmed. */
  async edit(): Promise<readonly EditedDocument[]> {
    const { database, world } = this.#context
    const edited: EditedDocument[] = []
    for (const [id, firstRevision] of this.#firstRevisions) {
      const { status, body } = await world.write(this.#other(), database, id, { _rev: firstRevision, drill: 2 })
      if (status === 201) edited.push({ id, firstRevision, lastRevision: body.rev })
    }
    return edited
  }

  #other(): number {
    return this.#context.dice.pick(this.#context.others)
  }
}

/** Edits the replaced revision of the document after some time. Returns a finding when the edit succeeds. */
export async function editReplaced(
  { database, world }: DrillContext, { firstRevision, id, lastRevision }: EditedDocument, through: number,
  afterMs: number,
): Promise<Findings> {
  await world.sleep(afterMs)
  const { status } = await world.write(through, database, id, { _rev: firstRevision, drill: 'replaced' })
  return status === 201 || status === 202
    ? [`an edit of ${id} ${firstRevision} through node ${through} was answered ${status}, although ${lastRevision} `
      + 'had replaced that revision']
    : []
}

/** Reads the documents through a node for some time, as soon as it answers. */
export async function readLatest(
  { database, world }: DrillContext, edited: readonly EditedDocument[], through: number, ms: number,
): Promise<Findings> {
  const endMs = world.nowMs + ms
  const findings: string[] = []
  while (world.nowMs < endMs && findings.length === 0) {
    await Promise.all(edited.map(async ({ id, lastRevision }) => {
      const { status, body } = await world.read(through, database, id)
      if (status !== 404 && (status !== 200 || body._rev === lastRevision)) return
      findings.push(`node ${through} answered ${status} ${body._rev ?? ''} for ${id}, of which ${lastRevision} had `
        + 'been acknowledged by a majority')
    }))
    await world.sleep(pollMs)
  }
  return findings
}

/** Sends a GET until a node can reach the replicas: links that were cut are opened again after a pause. */
export async function getAtRest(world: World, through: number, path: string): Promise<Answer> {
  let answer = await world.send(through, 'GET', path)
  await world.eventually(`an answer to GET ${path} through node ${through}`, reachableMsMax, async () => {
    if (answer.status === 503) answer = await world.send(through, 'GET', path)
    return answer.status === 503 ? JSON.stringify(answer.body) : null
  })
  return answer
}

/** Sends a DELETE of a database until it is gone. */
export async function deleteAtRest(world: World, through: number, path: string): Promise<void> {
  await world.eventually(`${path} to be deleted`, reachableMsMax, async () => {
    const { status } = await world.send(through, 'DELETE', path)
    return status === 200 || status === 404 ? null : `status ${status}`
  })
}

/** Deletes a database. Resolves when all nodes know of it, so that none stops before it has removed the indexes. */
export async function deleteEverywhere(world: World, through: number, name: string): Promise<void> {
  await deleteAtRest(world, through, `/${name}`)
  await world.eventually(`all nodes to know that ${name} is deleted`, reachableMsMax, async () => {
    const behind = world.nodes.find(({ inside }) => inside?.control.state()?.databases.has(name))
    if (behind !== undefined) await world.sleep(pollMs)
    return behind?.name ?? null
  })
}

/** When all replicas are equal again, each document has its last revision and no conflict. */
export async function endsInOneBranch(
  { database, world }: DrillContext, edited: readonly EditedDocument[],
): Promise<Findings> {
  const findings: string[] = []
  for (const { id, lastRevision } of edited) {
    const { status, body } = await getAtRest(world, 1, `/${database}/${id}?conflicts=true`)
    if (status === 200 && body._rev === lastRevision && body._conflicts === undefined) continue
    findings.push(`${id} ends as ${status} ${JSON.stringify(body)}, although nobody edited ${lastRevision}`)
  }
  return findings
}
