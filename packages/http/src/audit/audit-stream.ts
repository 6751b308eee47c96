/**
 * Records events in a file or in the log. The lines of a file are written in the background, in batches, while requests
 * continue. Lines that find the buffer full, and those of a batch that cannot be written, are lost. Their number is the
 * first line that is written afterwards, and it is counted by a metric and reported in the log.
 */
import { SingleRun } from '@sectional/core'
import type { OptionValues } from '@sectional/core/options'
import { RepeatedLines, sleep, type Counter, type Log, type Runtime } from '@sectional/runtime'
import type { Audit, AuditEvent } from './audit.ts'
import { auditLine, auditRecord, lostRecord } from './audit-line.ts'
import type { auditDeclarations } from './audit-options.ts'

/** Milliseconds that the last lines have to be written when the node stops. */
const stopMsMax = 2000

export interface AuditStreamParts {
  readonly runtime: Pick<Runtime, 'appendFiles' | 'clock' | 'log' | 'metrics'>
  /** Name of the node. */
  readonly node: string
  readonly options: OptionValues<typeof auditDeclarations>
}

export class AuditStream implements Audit {
  readonly #parts: AuditStreamParts
  /** Writes events whatever `log/level` is, which can be changed over HTTP. */
  readonly #log: Log
  readonly #losses: RepeatedLines
  readonly #recorded: Counter
  readonly #lost: Counter
  /** Lines that wait for the write that is running. */
  #waiting: string[] = []
  /** Bytes of the lines that wait or are being written. */
  #bytes = 0
  /** Lines that were lost since the last line that was written. */
  #lostCount = 0
  readonly #writing = new SingleRun(() => this.#write())

  constructor(parts: AuditStreamParts) {
    const { clock, log, metrics } = parts.runtime
    this.#parts = parts
    this.#log = log.child({}, 'info')
    this.#losses = new RepeatedLines(log, clock)
    this.#recorded = metrics.counter('sectional_audit_lines_total', 'Lines of the audit stream')
    this.#lost = metrics.counter('sectional_audit_lines_lost_total', 'Lines of the audit stream that were lost')
    this.#recorded.add(0)
    this.#lost.add(0)
  }

  record(event: AuditEvent): void {
    const { runtime: { clock }, node, options } = this.#parts
    if (options.auditOutput === 'off' || !options.auditEvents.includes(event.event)) return
    const record = auditRecord(event, node, clock.now())
    if (options.auditOutput === 'log') {
      this.#log.info({ audit: record }, 'audit')
      this.#recorded.add()
      return
    }
    const line = auditLine(record)
    if (this.#bytes + line.length > options.auditBufferBytes) return this.#lose(1, 'the buffer is full')
    this.#bytes += line.length
    this.#waiting.push(line)
    this.#writing.request()
  }

  /** Resolves when the lines are written, or after two seconds. Call this when no more events come. */
  async stop(): Promise<void> {
    const { running } = this.#writing
    if (running === undefined) return
    const late = new AbortController()
    await Promise.race([running, sleep(this.#parts.runtime.clock, stopMsMax, late.signal)])
    late.abort()
  }

  async #write(): Promise<void> {
    const { runtime: { appendFiles, clock }, node, options } = this.#parts
    while (this.#waiting.length > 0) {
      const lines = this.#waiting
      this.#waiting = []
      const lost = this.#lostCount
      const text = lines.join('')
      const notice = lost === 0 ? '' : auditLine(lostRecord(lost, node, clock.now()))
      try {
        await appendFiles.append(options.auditFile, notice + text)
        this.#lostCount -= lost
        this.#recorded.add(lines.length)
      } catch (error) {
        this.#lose(lines.length, String(error))
      }
      this.#bytes -= text.length
    }
  }

  #lose(lines: number, cause: string): void {
    this.#lostCount += lines
    this.#lost.add(lines)
    this.#losses.error('lost', { lost: this.#lostCount, cause }, 'lines of the audit stream are lost')
  }
}
