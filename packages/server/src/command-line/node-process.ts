/** Runs one `sectional node` as a child process, and restarts it after a backoff when it ends unexpectedly. */
import { fork, type ChildProcess } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
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

export class NodeProcess {
  readonly plan: PlannedNode
  readonly #report: (line: string) => void
  #child: ChildProcess | undefined
  #startedAt = 0
  #backoffMs = backoffMsMin
  #restart: NodeJS.Timeout | undefined
  #stopping = false
  #ended: () => void = () => undefined

  constructor(plan: PlannedNode, report: (line: string) => void) {
    this.plan = plan
    this.#report = report
  }

  start(): void {
    this.#startedAt = performance.now()
    const log = this.#openLog()
    const flags = this.plan.configuration.flatMap(path => ['--config', path])
    // Run the child in its own process group: Ctrl-C in the terminal then reaches only the supervisor, which stops the
    // nodes.
    const child = fork(entryPoint, ['node', ...flags], { detached: true, stdio: ['ignore', log, log, 'ipc'] })
    closeSync(log)
    this.#child = child
    child.once('error', error => this.#report(`${this.plan.name} cannot be started: ${error.message}`))
    child.once('exit', (code, signal) => this.#exited(code, signal))
  }

  async stop(): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#restart)
    const child = this.#child
    if (child === undefined) return
    const ended = new Promise<void>(resolve => { this.#ended = resolve })
    child.kill('SIGTERM')
    const deadline = setTimeout(() => {
      this.#report(`${this.plan.name} has not stopped after ${stopMsMax / 1000} s and is killed; `
        + 'acknowledged writes are on its disk')
      child.kill('SIGKILL')
    }, stopMsMax)
    await ended
    clearTimeout(deadline)
  }

  #exited(code: number | null, signal: NodeJS.Signals | null): void {
    this.#child = undefined
    if (this.#stopping) return this.#ended()
    if (performance.now() - this.#startedAt > steadyMs) this.#backoffMs = backoffMsMin
    this.#report(`${this.plan.name} ended with ${signal ?? `status ${code}`}; it is started again in `
      + `${this.#backoffMs / 1000} s. Last lines of ${this.plan.logFile}:\n${this.#lastLogLines()}`)
    this.#restart = setTimeout(() => this.start(), this.#backoffMs)
    this.#backoffMs = Math.min(this.#backoffMs * 2, backoffMsMax)
  }

  #openLog(): number {
    const { logFile } = this.plan
    if (existsSync(logFile) && statSync(logFile).size > logBytesMax) renameSync(logFile, `${logFile}.1`)
    return openSync(logFile, 'a', 0o600)
  }

  #lastLogLines(): string {
    return readFileSync(this.plan.logFile, 'utf8').trimEnd().split('\n').slice(-reportedLogLines)
      .map(line => `    ${line}`).join('\n')
  }
}
