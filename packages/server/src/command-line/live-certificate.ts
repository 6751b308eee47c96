/** A certificate that is read again when its files change. */
import { X509Certificate } from 'node:crypto'
import type { Clock, Log, Metrics, Timer, TlsContext, TlsContextSource } from '@sectional/runtime'
import type { Validity } from './certificate-chain.ts'

/** How often the files are checked for changes. */
const checkMs = 2000
/** How often files that could not be used are read again: a certificate may become valid. */
const retryMs = 60_000
const dayMs = 86_400_000
/** The log warns of a certificate that expires within this time. */
const expiryNoticeMs = 14 * dayMs

export interface ReadCertificate<Context extends TlsContext> {
  readonly context: Context
  /** The file of the certificate, as messages name it. */
  readonly file: string
  /** When the certificate and those of its authorities are valid. */
  readonly validity: Validity
  /** Why some peers refuse the certificate at any time, although others take it; null: no reason is known. */
  readonly problem: string | null
}

export interface LiveCertificateParts<Context extends TlsContext> {
  /** What the certificate is for, in words; the log and the metrics show it. */
  readonly use: string
  /** Reads and checks the files. @throws Error whose message names the option and the problem */
  readonly read: (nowMs: number) => ReadCertificate<Context>
  /** Returns text that differs after a file was written or replaced. */
  readonly stamp: () => string
}

/** What an owner of a certificate needs while the node runs. */
export interface CertificateWatch {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** Calls the listener when settings have changed, or were read again. Returns the function that ends this. */
  onChange(listener: () => void): () => void
}

export class LiveCertificate<Context extends TlsContext = TlsContext> implements TlsContextSource<Context> {
  readonly #parts: LiveCertificateParts<Context>
  readonly #listeners = new Set<() => void>()
  #read: ReadCertificate<Context>
  /** The stamp of the files that were read last, whether or not they could be used. */
  #readStamp: string
  /** The stamp at the last check. */
  #seenStamp: string
  /** Why the files that were read last cannot be used; null: they are in use. */
  #refusal: string | null = null
  #refusedMs = 0
  /** The problem that was logged last, and when. */
  #warned: string | null = null
  #warnedMs = 0

  /** @throws Error when the files cannot be used */
  constructor(parts: LiveCertificateParts<Context>, nowMs: number) {
    this.#parts = parts
    this.#readStamp = this.#seenStamp = parts.stamp()
    this.#read = parts.read(nowMs)
  }

  get current(): Context {
    return this.#read.context
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  /** Returns why peers refuse the certificate; null when no reason is known. */
  problem(nowMs: number): string | null {
    return problemOf(this.#read, nowMs)
  }

  /** Reads the files again when they or the settings change. Returns the function that ends this. */
  watch({ clock, log, metrics, onChange }: CertificateWatch): () => void {
    let timer: Timer
    const check = (): void => {
      this.#check(log, clock.now())
      this.#warn(log, clock.now())
      timer = clock.setTimer(checkMs, check)
    }
    timer = clock.setTimer(checkMs, check)
    this.#warn(log, clock.now())
    const unsubscribe = onChange(() => { this.#reload(log, clock.now()) })
    this.#show(metrics)
    return () => {
      timer.cancel()
      unsubscribe()
    }
  }

  #show(metrics: Metrics): void {
    const refused = metrics.gauge(
      'sectional_certificate_refused', '1 while the files of a certificate cannot be used, and the previous one is',
      ['use'],
    )
    const expires = metrics.gauge(
      'sectional_certificate_expiry_seconds', 'When the certificate in use expires, in seconds since 1970', ['use'],
    )
    metrics.onCollect(() => {
      refused.set(this.#refusal === null ? 0 : 1, { use: this.#parts.use })
      expires.set(this.#read.validity.toMs / 1000, { use: this.#parts.use })
    })
  }

  /** Reads changed files when they stay unchanged for one interval: key and certificate may be replaced one by one. */
  #check(log: Log, nowMs: number): void {
    const stamp = this.#parts.stamp()
    const isSettled = stamp === this.#seenStamp
    this.#seenStamp = stamp
    const isRetry = this.#refusal !== null && nowMs - this.#refusedMs >= retryMs
    if (isSettled && (stamp !== this.#readStamp || isRetry)) this.#reload(log, nowMs)
  }

  #reload(log: Log, nowMs: number): void {
    const { use, read, stamp } = this.#parts
    const isKnown = stamp() === this.#readStamp
    this.#readStamp = stamp()
    try {
      const next = read(nowMs)
      const problem = problemOf(next, nowMs)
      const isSame = JSON.stringify(next.context) === JSON.stringify(this.#read.context)
      if (problem !== null && !isSame && this.problem(nowMs) === null) throw new Error(problem)
      this.#refusal = null
      this.#read = next
      if (isSame) return
      this.#warned = null
      for (const listener of [...this.#listeners]) listener()
      const { subjectAltName, validTo } = new X509Certificate(next.context.cert)
      log.info({ use, names: subjectAltName, validTo }, 'a certificate was replaced')
    } catch (error) {
      const reason = (error as Error).message
      const isRepeated = isKnown && reason === this.#refusal
      this.#refusal = reason
      this.#refusedMs = nowMs
      if (isRepeated) return
      log.error({ use, reason }, 'new files or settings of a certificate cannot be used; the previous ones stay in use')
    }
  }

  /** Warns once a day, and when the problem becomes another one. */
  #warn(log: Log, nowMs: number): void {
    const { validity: { fromMs, toMs } } = this.#read
    const reason = this.problem(nowMs)
    const problem = reason ?? (toMs - nowMs < expiryNoticeMs ? 'soon' : null)
    if (problem === null || (problem === this.#warned && nowMs - this.#warnedMs < dayMs)) return
    this.#warned = problem
    this.#warnedMs = nowMs
    const fields = {
      use: this.#parts.use, validFrom: new Date(fromMs).toISOString(), validTo: new Date(toMs).toISOString(),
    }
    if (reason === null) log.warn(fields, 'a certificate expires soon')
    else log.error({ ...fields, reason }, 'the certificate in use is refused by others')
  }
}

function problemOf(read: ReadCertificate<TlsContext>, nowMs: number): string | null {
  return validityProblem(read, nowMs) ?? read.problem
}

/** Returns why nobody takes the certificate at this time; null: it is valid. */
export function validityProblem(
  { file, validity: { fromMs, toMs } }: Pick<ReadCertificate<TlsContext>, 'file' | 'validity'>, nowMs: number,
): string | null {
  const shown = `${file}, or the certificate of an authority that signed it,`
  const [from, to] = [fromMs, toMs].map(ms => new Date(ms).toISOString())
  if (toMs < nowMs) return `${shown} has expired: it was valid until ${to}. Replace it`
  return fromMs > nowMs ? `${shown} is not valid before ${from}: replace it, or check the clock of this machine` : null
}
