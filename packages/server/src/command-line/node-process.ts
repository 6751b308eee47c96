/**
 * Runs one `sectional node` as a child process, and starts it again after a backoff when it ends unexpectedly or cannot
 * be started.
 */
import { fork, type ChildProcess, type ForkOptions } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Clock, Timer } from '@sectional/runtime'
import type { PlannedNode } from './cluster-folder.ts'

const backoffMsMin = 1000
const backoffMsMax = 30_000
/** Milliseconds after which a running node resets the backoff to the shortest one. */
const steadyMs = 60_000
/** Milliseconds after which a child that does not stop is killed, so that the terminal does not hang. */
const stopMsMax = 20_000
const logBytesMax = 64 * 1024 * 1024
const reportedLogLines = 5

/** The entry point beside this file, in src as well as in dist. */
const entryPoint = fileURLToPath(new URL(`../cli${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url))

/** What a `NodeProcess` uses of the system. */
export interface ProcessSystem {
  /** Starts a process of this module. @throws when the process cannot be started; it may also emit `error` instead */
  readonly fork: (entryPoint: string, words: readonly string[], options: ForkOptions) => ChildProcess
  /** Its timers keep this process alive, because a node that is to be started again has no process. */
  readonly clock: Pick<Clock, 'monotonic' | 'setTimer'>
}

const realSystem: ProcessSystem = {
  fork,
  clock: {
    monotonic: () => performance.now(),
    setTimer: (ms, callback) => {
      const timeout = setTimeout(callback, ms)
      return { cancel: () => clearTimeout(timeout) }
    },
  },
}

export class NodeProcess {
  readonly plan: PlannedNode
  readonly #report: (line: string) => void
  readonly #system: ProcessSystem
  #child: ChildProcess | undefined
  #startedAt = 0
  #backoffMs = backoffMsMin
  #restart: Timer | undefined
  #stopping = false
  #ended: () => void = () => undefined

  constructor(plan: PlannedNode, report: (line: string) => void, system: ProcessSystem = realSystem) {
    this.plan = plan
    this.#report = report
    this.#system = system
  }

  /** Starts the process. When that fails, the reason is reported, and further attempts follow. */
  start(): void {
    this.#startedAt = this.#system.clock.monotonic()
    let child: ChildProcess
    try {
      child = this.#fork()
    } catch (error) {
      return this.#gone(`cannot be started: ${messageOf(error)}`)
    }
    this.#child = child
    child.on('error', error => {
      // Errors of a process that runs, such as a signal that cannot be sent, do not end it.
      if (child.pid !== undefined) return this.#report(`${this.plan.name}: ${error.message}`)
      // A process that was not started emits no `exit` in most cases.
      if (this.#child === child) this.#gone(`cannot be started: ${error.message}`)
    })
    child.once('exit', (code, signal) => {
      if (this.#child === child) this.#gone(`ended with ${signal ?? `status ${code}`}`)
    })
  }

  async stop(): Promise<void> {
    this.#stopping = true
    this.#restart?.cancel()
    const child = this.#child
    if (child === undefined) return
    const ended = new Promise<void>(resolve => { this.#ended = resolve })
    child.kill('SIGTERM')
    const deadline = this.#system.clock.setTimer(stopMsMax, () => {
      this.#report(`${this.plan.name} has not stopped after ${stopMsMax / 1000} s and is killed; `
        + 'acknowledged writes are on its disk')
      child.kill('SIGKILL')
    })
    await ended
    deadline.cancel()
  }

  #fork(): ChildProcess {
    const log = this.#openLog()
    try {
      const flags = this.plan.configuration.flatMap(path => ['--config', path])
      // Run the child in its own process group: Ctrl-C in the terminal then reaches only the supervisor, which stops
      // the nodes.
      return this.#system.fork(entryPoint, ['node', ...flags], { detached: true, stdio: ['ignore', log, log, 'ipc'] })
    } finally {
      closeSync(log)
    }
  }

  /** @param how continues a sentence that begins with the name of the node */
  #gone(how: string): void {
    const { clock } = this.#system
    this.#child = undefined
    if (this.#stopping) return this.#ended()
    if (clock.monotonic() - this.#startedAt > steadyMs) this.#backoffMs = backoffMsMin
    this.#report(`${this.plan.name} ${how}; it is started again in ${this.#backoffMs / 1000} s. `
      + `Last lines of ${this.plan.logFile}:\n${this.#lastLogLines()}`)
    this.#restart = clock.setTimer(this.#backoffMs, () => this.start())
    this.#backoffMs = Math.min(this.#backoffMs * 2, backoffMsMax)
  }

  #openLog(): number {
    const { logFile } = this.plan
    if (existsSync(logFile) && statSync(logFile).size > logBytesMax) renameSync(logFile, `${logFile}.1`)
    return openSync(logFile, 'a', 0o600)
  }

  #lastLogLines(): string {
    try {
      return readFileSync(this.plan.logFile, 'utf8').trimEnd().split('\n').slice(-reportedLogLines)
        .map(line => `    ${line}`).join('\n')
    } catch (error) {
      return `    (cannot be read: ${messageOf(error)})`
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
