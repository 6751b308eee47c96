import type { CallContext, ChangeReplica, IndexDefinition, ReplicaCheckpoint } from '@sectional/core'
import { indexId, newestPosition, ReplicaError } from '@sectional/core'
import type { Clock } from '@sectional/runtime'
import { toReplicaError } from '../calls/call-guard.ts'
import type { BuildQueue, BuildTurn } from './build-queue.ts'
import { type ContentParts, IndexContent } from './index-content.ts'

export interface BuildParts extends ContentParts {
  /** Names the replica in the store of indexes. */
  readonly owner: string
  /** Names the database of the replica. */
  readonly database: string
  readonly replica: ChangeReplica
  readonly queue: BuildQueue
  readonly clock: Clock
  /** Receives the error of each build that failed. */
  readonly onFailure?: (definition: IndexDefinition, error: ReplicaError) => void
}

/** How far a build is. Times are milliseconds since 1970, and changes are counted as sequence numbers. */
export interface BuildProgress {
  readonly startedOn: number
  readonly updatedOn: number
  readonly changesDone: number
  readonly totalChanges: number
}

/** Called when a build has reached a position or begun anew, and with the error with which it ended. */
export type BuildListener = (failure?: unknown) => void

/** Milliseconds that each call of a build on its replica may take. */
const callTimeoutMs = 30_000

/** One index and the build that fills it. At most one build of an index runs at a time. */
export class IndexBuild {
  readonly definition: IndexDefinition
  readonly listeners = new Set<BuildListener>()
  readonly #parts: BuildParts
  readonly #ended = new AbortController()
  #content: IndexContent
  /** The build that runs or waits; resolves when it has ended. */
  #work: Promise<void> | undefined
  /** The sequence that the build must reach, in the history of `#content`. */
  #through = 0
  /** Whether the last build was slow, or failed. */
  #wasSlow = false
  /** Whether the build that runs may still begin anew because of damage. It does so once. */
  #mayRepair = true
  /** When the build that runs began, when it last wrote changes, and the sequence at which it began. */
  #run: { readonly startedOn: number; readonly updatedOn: number; readonly from: number } | undefined

  private constructor(content: IndexContent, parts: BuildParts) {
    this.definition = content.definition
    this.#content = content
    this.#parts = parts
  }

  static create(definition: IndexDefinition, history: string, parts: BuildParts): IndexBuild {
    return new IndexBuild(IndexContent.create(parts.owner, definition, history, parts), parts)
  }

  /** Continues with an index that is in the store. */
  static load(content: IndexContent, parts: BuildParts): IndexBuild {
    return new IndexBuild(content, parts)
  }

  get content(): IndexContent { return this.#content }
  get building(): boolean { return this.#work !== undefined }

  /** How far the build is; undefined when none runs. */
  get progress(): BuildProgress | undefined {
    if (this.#run === undefined) return undefined
    const { startedOn, updatedOn, from } = this.#run
    const { readSequence } = this.#content
    return { startedOn, updatedOn, changesDone: readSequence - from, totalChanges: this.#through - from }
  }

  /**
   * Begins a build up to that position, or extends the one that runs.
   * @throws ReplicaError `overloaded` when too many builds of the node wait
   */
  request({ history, sequence }: ReplicaCheckpoint): void {
    this.#adopt(history)
    this.#through = Math.max(this.#through, sequence)
    if (this.#work !== undefined || this.#content.sequence >= this.#through) return
    this.#work = this.#build(this.#enter(false))
  }

  /** @throws ReplicaError `overloaded`, synchronously, unless the build continues */
  #enter(continues: boolean): Promise<BuildTurn> {
    const changes = this.#through - this.#content.readSequence
    const group = `${this.#parts.database} ${indexId(this.definition)}`
    return this.#parts.queue.enter(this.#ended.signal, { group, changes, wasSlow: this.#wasSlow, continues })
  }

  /** Ends the build. Calls that wait for it fail. Resolves when the build makes no calls any more. */
  async end(reason: ReplicaError): Promise<void> {
    this.#ended.abort()
    this.#content.end()
    this.#tell(reason)
    await this.#work
  }

  async #build(entered: Promise<BuildTurn>): Promise<void> {
    let failure: unknown
    this.#mayRepair = true
    try {
      // Changes that came meanwhile are read in another turn, so that a build which is extended again and again does
      // not keep the other shards of the view from theirs.
      let next: Promise<BuildTurn> | undefined = entered
      for (; next !== undefined; next = this.#isBehind ? this.#enter(true) : undefined) {
        await this.#readInTurn(await next)
      }
    } catch (error) {
      failure = toReplicaError(error)
      this.#wasSlow = true
    }
    this.#work = undefined
    this.#run = undefined
    if (failure === undefined) return
    if (failure instanceof ReplicaError) this.#parts.onFailure?.(this.definition, failure)
    this.#tell(failure)
  }

  get #isBehind(): boolean {
    return !this.#ended.signal.aborted && this.#content.sequence < this.#through
  }

  async #readInTurn(turn: BuildTurn): Promise<void> {
    if (this.#run === undefined) this.#noteStart()
    try {
      if (this.#isBehind) await this.#readChanges(turn)
    } finally {
      turn.leave()
      this.#wasSlow = turn.wasSlow
    }
  }

  /** Reads the changes to their end once, or begins anew when the replica does not know the index's position. */
  async #readChanges(turn: BuildTurn): Promise<void> {
    const { replica, turns } = this.#parts
    const call: CallContext = { timeoutMs: callTimeoutMs, signal: this.#ended.signal }
    const now = await newestPosition(replica, call)
    this.#adopt(now.history)
    const content = this.#content
    try {
      await content.beginScan(now.sequence)
      const request = { since: content.readSequence, descending: false, body: true, locals: false, purges: true }
      for await (const page of replica.scanChanges(request, { ...call, history: content.history })) {
        await turns.background.pause()
        if (page.length === 0) continue
        // Before a page and not behind it, because little is left to do behind the last one.
        await turn.giveWay()
        if (content !== this.#content) return
        await content.apply(page, this.#ended.signal)
        turn.progressed()
        this.#run = { ...this.#run!, updatedOn: this.#parts.clock.now() }
      }
      await content.complete(now.sequence)
      this.#tell()
    } catch (error) {
      if (content !== this.#content) return
      const code = error instanceof ReplicaError ? error.code : undefined
      const repairs = content.isBroken && this.#mayRepair
      if (repairs) this.#mayRepair = false
      if (code === 'position_expired' || repairs) this.#beginAnew(content.history)
      else if (code !== 'other_history') throw error
    }
  }

  /** Begins anew when the replica has another history than the content, or the content is damaged. */
  #adopt(history: string): void {
    if (this.#content.history === history && !this.#content.isBroken) return
    this.#beginAnew(history)
    this.#through = 0
    this.#tell()
  }

  #beginAnew(history: string): void {
    if (this.#ended.signal.aborted) throw new ReplicaError('closed', 'the build was ended')
    this.#content.end()
    this.#content = IndexContent.create(this.#parts.owner, this.definition, history, this.#parts)
    if (this.#run !== undefined) this.#noteStart()
  }

  #noteStart(): void {
    const now = this.#parts.clock.now()
    this.#run = { startedOn: now, updatedOn: now, from: this.#content.readSequence }
  }

  #tell(failure?: unknown): void {
    for (const listener of [...this.listeners]) listener(failure)
  }
}
