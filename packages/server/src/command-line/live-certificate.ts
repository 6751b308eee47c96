/** A certificate that is read again when its files change. */
import { X509Certificate } from 'node:crypto'
import type { Clock, Log, Timer, TlsContext, TlsContextSource } from '@sectional/runtime'

/** How often the files are checked for changes. */
const checkMs = 2000
const dayMs = 86_400_000
/** The log warns of a certificate that expires within this time. */
const expiryNoticeMs = 14 * dayMs

export interface LiveCertificateParts<Context extends TlsContext> {
  /** What the certificate is for, in words; the log shows it. */
  readonly use: string
  /** Reads and checks the files. @throws Error whose message names the option and the problem */
  readonly read: () => Context
  /** Returns text that differs after a file was written or replaced. */
  readonly stamp: () => string
}

/** What an owner of a certificate needs while the node runs. */
export interface CertificateWatch {
  readonly clock: Clock
  readonly log: Log
  /** Calls the listener when settings have changed, or were read again. Returns the function that ends this. */
  onChange(listener: () => void): () => void
}

export class LiveCertificate<Context extends TlsContext = TlsContext> implements TlsContextSource<Context> {
  readonly #parts: LiveCertificateParts<Context>
  readonly #listeners = new Set<() => void>()
  #current: Context
  /** The stamp of the files that were read last, whether or not they could be used. */
  #readStamp: string
  /** The stamp at the last check. */
  #seenStamp: string
  /** The problem that was logged last, and when. */
  #warned: string | null = null
  #warnedMs = 0

  /** @throws Error when the files cannot be used */
  constructor(parts: LiveCertificateParts<Context>) {
    this.#parts = parts
    this.#readStamp = this.#seenStamp = parts.stamp()
    this.#current = parts.read()
  }

  get current(): Context {
    return this.#current
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  /** Reads the files again when they or the settings change. Returns the function that ends this. */
  watch({ clock, log, onChange }: CertificateWatch): () => void {
    let timer: Timer
    const check = (): void => {
      this.#check(log)
      this.#warnOfExpiry(clock, log)
      timer = clock.setTimer(checkMs, check)
    }
    timer = clock.setTimer(checkMs, check)
    this.#warnOfExpiry(clock, log)
    const unsubscribe = onChange(() => { this.#reload(log) })
    return () => {
      timer.cancel()
      unsubscribe()
    }
  }

  /** Reads changed files when they stay unchanged for one interval: key and certificate may be replaced one by one. */
  #check(log: Log): void {
    const stamp = this.#parts.stamp()
    const isSettled = stamp === this.#seenStamp
    this.#seenStamp = stamp
    if (isSettled && stamp !== this.#readStamp) this.#reload(log)
  }

  #reload(log: Log): void {
    const { use, read, stamp } = this.#parts
    this.#readStamp = stamp()
    try {
      const context = read()
      if (JSON.stringify(context) === JSON.stringify(this.#current)) return
      this.#current = context
      this.#warned = null
      for (const listener of [...this.#listeners]) listener()
      const { subjectAltName, validTo } = new X509Certificate(context.cert)
      log.info({ use, names: subjectAltName, validTo }, 'a certificate was replaced')
    } catch (error) {
      log.error(
        { use, reason: (error as Error).message }, 'a new certificate cannot be used; the previous one stays in use',
      )
    }
  }

  /** Warns once a day, and when the problem becomes another one. */
  #warnOfExpiry(clock: Clock, log: Log): void {
    const nowMs = clock.now()
    const { validFromDate, validToDate } = new X509Certificate(this.#current.cert)
    const problem = expiryProblem(validFromDate.getTime(), validToDate.getTime(), nowMs)
    if (problem === null || (problem === this.#warned && nowMs - this.#warnedMs < dayMs)) return
    this.#warned = problem
    this.#warnedMs = nowMs
    log.warn({
      use: this.#parts.use, validFrom: validFromDate.toISOString(), validTo: validToDate.toISOString(),
    }, problem)
  }
}

function expiryProblem(fromMs: number, toMs: number, nowMs: number): string | null {
  if (fromMs > nowMs) return 'a certificate is not valid yet'
  if (toMs < nowMs) return 'a certificate has expired'
  return toMs - nowMs < expiryNoticeMs ? 'a certificate expires soon' : null
}
