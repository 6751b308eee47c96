import { spawn, type ChildProcess } from 'node:child_process'
import { constants, getPriority, setPriority } from 'node:os'
import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { SandboxFunction, SandboxLimits } from '../sandbox.ts'
import { frameOf, FrameReader } from './messages.ts'
import type { CallKind, CallReply, Hello, LoadFailure, Reply, Request } from './messages.ts'
import type { ChildOptions } from './entry.ts'
import { processUsage, type ProcessUsage } from './process-usage.ts'

/** The isolates of a child; beyond this number the least recently used one is disposed of. */
const isolatesMax = 16
/** The functions of an isolate; beyond this number the isolate is made anew. */
const isolateFunctionsMax = 100
/** Bytes of the header of a reply. The messages of 64 failed calls, with all characters escaped, have fewer. */
const headerBytesMax = 1024 * 1024
/** The share of `callMs` after which a child begins no further call of a message. */
const sliceShare = 20
/**
 * How much greater the nice value of a child is than that of the node. On a busy core the node, which serves requests,
 * gets about three times the share of the child.
 */
const niceness = 5
/** isolated-vm demands of its process that it does not start from Node's snapshot. */
const nodeOptions = ['--no-node-snapshot', '--disable-warning=ExperimentalWarning']

/** A call on its way to a child. */
export interface ChildCall {
  readonly called: SandboxFunction
  readonly kind: CallKind
  readonly count: number
  /** The items of `Environment.run`, as UTF-8. */
  readonly items: Uint8Array
}

/** The reply to one call, and its outcomes as text when it is done. */
export interface ChildReply { readonly reply: CallReply; readonly text: string }

/**
 * Why a child ended: this node killed it for one of these reasons, something else killed it (`killed`), such as the
 * system when no memory is left, or it ended by itself (`crashed`).
 */
export type ChildEnd = 'timeout' | 'memory' | 'closed' | 'killed' | 'crashed'

export interface ChildEvents {
  /** The child can take a message; or it cannot run functions, for the given reason, and must be killed. */
  onReady(failure: LoadFailure | null): void
  onReplies(replies: readonly ChildReply[]): void
  /** Called once. Nothing else is called afterwards. */
  onEnd(end: ChildEnd): void
}

/** An isolate of the child, as the parent knows it. It has the functions of one design document with these modules. */
interface KnownIsolate extends Pick<SandboxFunction, 'database' | 'designDocument' | 'modules'> {
  readonly id: number
  readonly functions: Map<string, number>
}

/** One child process and the parent's knowledge about it. It handles one message at a time. */
export class SandboxChild {
  /** Undefined, like the pipes, when the process could not be started; `onEnd` follows then. */
  readonly #process: ChildProcess | undefined
  readonly #input: Writable | undefined
  readonly #output: Readable | undefined
  readonly #events: ChildEvents
  /** The isolates that the child has, the least recently used one first. */
  #isolates: readonly KnownIsolate[] = []
  #nextId = 1
  /** Why this node has killed the process. */
  #end: ChildEnd | undefined
  #ended = false

  /** @param library the module that the child loads as isolated-vm */
  constructor(library: string, limits: SandboxLimits, events: ChildEvents) {
    this.#events = events
    const options: ChildOptions = {
      library, heapMiB: limits.heapMiB, resultBytesMax: limits.resultBytesMax, sliceMs: limits.callMs / sliceShare,
      requestBytesMax: 4 * limits.waitingBytesMax,
    }
    try {
      this.#process = spawn(process.execPath, [...nodeOptions, entryFile(), JSON.stringify(options)], {
        // The last pipe carries nothing: the child ends when it closes.
        cwd: '/', env: {}, stdio: ['pipe', 'pipe', 'ignore', 'pipe'], windowsHide: true,
      })
    } catch {
      // Some errors of the system are thrown, such as that of too little memory. The others are events.
      process.nextTick(() => this.#finish('crashed'))
      return
    }
    this.#process.on('error', () => this.#finish('crashed'))
    this.#process.on('exit', (_code, signal) => this.#finish(signal === 'SIGKILL' ? 'killed' : 'crashed'))
    lowerPriority(this.#process.pid)
    const stdio: readonly unknown[] | undefined = this.#process.stdio
    if (stdio === undefined || stdio.includes(undefined)) return
    const [input, output, , lifeline] = stdio as readonly [Writable, Readable, null, Readable]
    this.#input = input
    this.#output = output
    this.#output.on('data', this.#reader(limits))
    // The end of the process is reported by `exit`, whatever happens to its pipes.
    for (const stream of [input, output, lifeline]) stream.on('error', () => {})
    // Only a child that works keeps the parent's process alive.
    this.#process.unref()
    for (const stream of [input, lifeline]) (stream as Socket).unref()
  }

  #reader(limits: SandboxLimits): (chunk: Buffer) => void {
    // Two calls can reach the limit of a reply together.
    const replyBytesMax = headerBytesMax + 2 * limits.resultBytesMax
    const reader = new FrameReader(replyBytesMax, headerBytesMax, (header, body) => this.#receive(header, body))
    return chunk => {
      try {
        if (!this.#ended) reader.push(chunk)
      } catch {
        this.kill('crashed')
      }
    }
  }

  get isolateCount(): number {
    return this.#isolates.length
  }

  /** True when the child has the isolate of this function. */
  knows(called: SandboxFunction): boolean {
    return this.#find(called) !== undefined
  }

  /** True when a call of this function was sent to the child, which still has it. */
  hasCalled(called: SandboxFunction): boolean {
    return this.#find(called)?.functions.has(called.source) ?? false
  }

  /** Sends calls in one message. The previous message must have been answered. */
  send(calls: readonly ChildCall[]): void {
    const request: OpenRequest = { drop: [], isolates: [], functions: [], calls: [] }
    for (const { called, kind, count, items } of calls) {
      const isolate = this.#isolateOf(called, request)
      let id = isolate.functions.get(called.source)
      if (id === undefined) {
        id = isolate.functions.size
        isolate.functions.set(called.source, id)
        request.functions.push({ isolate: isolate.id, id, source: called.source })
      }
      request.calls.push({ isolate: isolate.id, function: id, kind, count, bytes: items.length })
    }
    ;(this.#output as Socket).ref()
    this.#input?.write(frameOf(request satisfies Request, calls.map(({ items }) => items)))
  }

  /** Returns what the process uses, or null when the system does not report it. */
  usage(): ProcessUsage | null {
    return processUsage(this.#process?.pid)
  }

  /** Ends the process at once. `onEnd` follows. */
  kill(end: ChildEnd): void {
    this.#end ??= end
    this.#process?.kill('SIGKILL')
  }

  #receive(header: unknown, body: Buffer): void {
    (this.#output as Socket).unref()
    if (Object.hasOwn(header as object, 'failure')) return this.#events.onReady((header as Hello).failure)
    let at = 0
    this.#events.onReplies((header as Reply).calls.map(reply => {
      if (reply.status !== 'done') return { reply, text: '' }
      const text = body.toString('utf8', at, at += reply.bytes)
      return { reply, text }
    }))
  }

  /** @param end why the process has ended if this node has not killed it */
  #finish(end: ChildEnd): void {
    if (this.#ended) return
    this.#ended = true
    this.#output?.destroy()
    this.#events.onEnd(this.#end ?? end)
  }

  #isolateOf(called: SandboxFunction, request: OpenRequest): KnownIsolate {
    const { database, designDocument, modules } = called
    const known = this.#find(called)
    const others = this.#isolates.filter(isolate => isolate !== known)
    const hasRoom = known !== undefined
      && (known.functions.has(called.source) || known.functions.size < isolateFunctionsMax)
    if (hasRoom) {
      this.#isolates = [...others, known]
      return known
    }
    const made: KnownIsolate = { id: this.#nextId++, functions: new Map(), database, designDocument, modules }
    request.isolates.push({ id: made.id, modules })
    this.#isolates = [...others, made].slice(-isolatesMax)
    const dropped = [...known === undefined ? [] : [known], ...others.slice(0, -isolatesMax + 1)]
    request.drop.push(...dropped.map(({ id }) => id))
    return made
  }

  /** The modules may have megabytes. They are usually the same text, whose comparison takes no time. */
  #find({ database, designDocument, modules }: SandboxFunction): KnownIsolate | undefined {
    return this.#isolates.find(isolate => isolate.designDocument === designDocument && isolate.database === database
      && isolate.modules === modules)
  }
}

/** A request that is being made. */
interface OpenRequest {
  readonly drop: number[]
  readonly isolates: Request['isolates'][number][]
  readonly functions: Request['functions'][number][]
  readonly calls: Request['calls'][number][]
}

/** @param pid undefined when the process could not be started */
function lowerPriority(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, Math.min(getPriority() + niceness, constants.priority.PRIORITY_LOW))
  } catch {
    // The process has ended, which `exit` reports, or the system does not permit it.
  }
}

/** The child's program lies beside this file, as TypeScript in a checkout and as JavaScript in a package. */
function entryFile(): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return fileURLToPath(new URL(`./entry.${extension}`, import.meta.url))
}
