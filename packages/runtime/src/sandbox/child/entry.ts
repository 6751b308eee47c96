/** The program of a child process, which runs functions of design documents in isolates (`messages.ts`). */
import { writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import type ivm from 'isolated-vm'
import { HostedIsolate, type IsolateLimits } from './hosted-isolate.ts'
import { frameOf, FrameReader } from './messages.ts'
import type { CallReply, Hello, LoadFailure, Reply, Request } from './messages.ts'

export interface ChildOptions extends IsolateLimits {
  /** The module to load as isolated-vm. */
  readonly library: string
  /**
   * Milliseconds after which no further call of a request is begun: the others are answered as postponed. The same
   * happens when the outcomes have more than `resultBytesMax` bytes.
   */
  readonly sliceMs: number
  /** Number of bytes that a request may have. */
  readonly requestBytesMax: number
}

/** Bytes that are read from the parent at once. The system keeps about as many in the pipe. */
const inputBytes = 256 * 1024
/**
 * Matches the messages about a binary for another machine or version of Node.js: of the loader of isolated-vm, Node.js,
 * Linux, macOS and Windows. They have no codes of their own.
 */
const otherMachine =
  /No native build|NODE_MODULE_VERSION|ELF class|ELF header|`GLIBC|incompatible architecture|not a valid Win32/
/** The descriptor of a pipe on which nothing is sent. It ends when the parent ends, however it ends. */
const lifelineDescriptor = 3

const options = JSON.parse(process.argv[2] ?? '{}') as ChildOptions

endWithParent()
ignoreSignals()
beFirstToEnd()
const loaded = await loadLibrary()
send({ failure: 'failure' in loaded ? loaded.failure : null } satisfies Hello, [])
if ('library' in loaded) serve(loaded.library)

/** Kills this process when the parent ends. A thread waits for that: the main thread may be in an endless loop. */
function endWithParent(): void {
  const wait = `
    try { require('node:fs').readSync(${lifelineDescriptor}, Buffer.alloc(1)) } catch {}
    process.kill(process.pid, 'SIGKILL')`
  new Worker(wait, { eval: true }).unref()
}

/** Signals to the group of processes, such as that of Ctrl+C, are for the parent, which may still need answers. */
function ignoreSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
}

/** When the machine has no memory left, Linux ends this process rather than the parent. */
function beFirstToEnd(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {
    // Other systems have no such file.
  }
}

async function loadLibrary(): Promise<{ readonly library: typeof ivm } | { readonly failure: LoadFailure }> {
  try {
    return { library: (await import(options.library) as { readonly default: typeof ivm }).default }
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    const isFinal = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND' || otherMachine.test(message)
    return { failure: { message, isFinal } }
  }
}

function serve(library: typeof ivm): void {
  const isolates = new Map<number, HostedIsolate>()
  const reader = new FrameReader(options.requestBytesMax, options.requestBytesMax, (header, body) => {
    const request = header as Request
    for (const { id, modules } of request.isolates) isolates.set(id, new HostedIsolate(library, options, modules))
    for (const { isolate, id, source } of request.functions) isolates.get(isolate)?.addFunction(id, source)
    answer(isolates, request, body)
    for (const id of request.drop) {
      isolates.get(id)?.dispose()
      isolates.delete(id)
    }
  })
  // One buffer for all reads: for each read of a stream, Node.js takes memory that the system must clear first.
  const input = new Socket({
    fd: 0, onread: { buffer: Buffer.alloc(inputBytes), callback: (length, bytes) => {
      reader.push(bytes.subarray(0, length))
      return true
    } },
  })
  input.on('end', () => process.exit())
}

function answer(isolates: ReadonlyMap<number, HostedIsolate>, request: Request, body: Buffer): void {
  const end = performance.now() + options.sliceMs
  const calls: CallReply[] = []
  const texts: Buffer[] = []
  let at = 0
  let textBytes = 0
  for (const [index, call] of request.calls.entries()) {
    const items = body.toString('utf8', at, at += call.bytes)
    const isolate = isolates.get(call.isolate)
    if (index > 0 && (performance.now() >= end || textBytes >= options.resultBytesMax)) {
      calls.push({ status: 'postponed' })
    } else if (isolate === undefined) {
      calls.push({ status: 'failed', message: 'The request names an unknown isolate' })
    } else {
      const { reply, text } = isolate.run(call.function, call.kind, items, call.count)
      const bytes = Buffer.from(text)
      textBytes += bytes.length
      calls.push(reply)
      texts.push(bytes)
    }
  }
  send({ calls } satisfies Reply, texts)
}

function send(header: Hello | Reply, body: readonly Uint8Array[]): void {
  process.stdout.write(frameOf(header, body))
}
