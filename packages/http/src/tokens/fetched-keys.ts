/**
 * The keys that the issuer of tokens publishes. They are downloaded at the first token that needs one, and again when
 * they are old or a token names an unknown key, because issuers replace their keys. However many such tokens come, the
 * keys are downloaded at most every 30 seconds.
 */
import { ApiError } from '@sectional/core'
import { hideCredentials } from '@sectional/core/options'
import type { Clock, HttpClient, Log } from '@sectional/runtime'
import { createLocalJWKSet, type CryptoKey } from 'jose'
import type { HttpOptions } from '../settings/http-options.ts'
import { downloadKeySet, type KeySource } from './key-set-download.ts'
import type { TokenHeader } from './signed-token.ts'

/** Keys that are older than this are downloaded again, while they are still in use. */
const refreshMs = 10 * 60_000
/** A request waits for the download that replaces keys that are older than this. */
const awaitedMs = 2 * refreshMs
/** Keys that are older than this are not used any more: the issuer may have withdrawn them. */
const usableMs = 60 * 60_000
/** The least time between two downloads. */
const pauseMs = 30_000
/** Requests that wait for one download. A slow issuer must not hold as many requests as the node handles. */
const waitingMax = 256

type KeySelection = ReturnType<typeof createLocalJWKSet>

interface KeySet {
  readonly select: KeySelection
  /** The keys as text, by which a changed set is recognised. */
  readonly text: string
  /** Monotonic milliseconds. */
  readonly fetchedAt: number
}

export interface FetchedKeysParts {
  readonly client: HttpClient
  readonly clock: Clock
  readonly log: Log
  readonly options: Pick<HttpOptions, 'keySetUrl' | 'tokenIssuer'>
}

export class FetchedKeys {
  readonly #parts: FetchedKeysParts
  /** Called when the keys have changed. */
  onChange: () => void = () => {}
  #source: KeySource | null = null
  #keys: KeySet | null = null
  /** Monotonic milliseconds at which the last download began. */
  #triedAt = -Infinity
  #download: Promise<void> | undefined
  #waiting = 0

  constructor(parts: FetchedKeysParts) {
    this.#parts = parts
  }

  /**
   * Returns the key that the header of a token names; null when there is none, or when no issuer is configured. A token
   * without a key id gets the only key that suits its algorithm.
   *
   * @throws ApiError `service_unavailable` when the keys cannot be downloaded
   */
  async find(header: TokenHeader): Promise<CryptoKey | null> {
    if (!this.#follow()) return null
    const age = this.#age()
    if (age > awaitedMs) await this.#refresh()
    else if (age > refreshMs) this.#start()
    const keys = this.#usable()
    if (keys === null) throw unavailable()
    const key = await selectKey(keys, header)
    if (key !== null) return key
    await this.#refresh()
    const renewed = this.#usable()
    return renewed === null || renewed === keys ? null : selectKey(renewed, header)
  }

  /** Follows the configuration. Returns false when no issuer is configured. */
  #follow(): boolean {
    const { keySetUrl, tokenIssuer: issuer } = this.#parts.options
    const source = this.#source
    if (source?.keySetUrl !== keySetUrl || source.issuer !== issuer) {
      this.#source = { keySetUrl, issuer }
      this.#keys = null
      this.#triedAt = -Infinity
      this.#download = undefined
    }
    return keySetUrl !== '' || issuer !== ''
  }

  #usable(): KeySet | null {
    return this.#age() < usableMs ? this.#keys : null
  }

  /** Infinity without keys. */
  #age(): number {
    return this.#keys === null ? Infinity : this.#parts.clock.monotonic() - this.#keys.fetchedAt
  }

  /**
   * Resolves when the running download has ended, or at once when the last one was a short time ago, or many requests
   * wait already. Never rejects.
   */
  async #refresh(): Promise<void> {
    this.#start()
    if (this.#download === undefined || this.#waiting >= waitingMax) return
    this.#waiting++
    await this.#download
    this.#waiting--
  }

  /** Begins a download, unless one is running, or the last one was a short time ago. */
  #start(): void {
    if (this.#download !== undefined || this.#parts.clock.monotonic() - this.#triedAt < pauseMs) return
    const source = this.#source!
    const download = this.#run(source).finally(() => {
      if (this.#download === download) this.#download = undefined
    })
    this.#download = download
  }

  async #run(source: KeySource): Promise<void> {
    const { client, clock, log } = this.#parts
    const fetchedAt = this.#triedAt = clock.monotonic()
    try {
      const set = await downloadKeySet(client, source)
      this.#follow()
      if (this.#source !== source) return
      const text = JSON.stringify(set)
      const isChanged = this.#keys !== null && this.#keys.text !== text
      this.#keys = isChanged || this.#keys === null
        ? { select: createLocalJWKSet(set), text, fetchedAt }
        : { ...this.#keys, fetchedAt }
      if (isChanged) this.onChange()
    } catch (error) {
      // The URL that an issuer publishes may have a user name and a password.
      log.warn({ error: hideCredentials((error as Error).message) }, 'the keys of tokens could not be downloaded')
    }
  }
}

/** Returns null when no key suits, when several do, and when the key cannot be read. */
async function selectKey({ select }: KeySet, { algorithm, keyId }: TokenHeader): Promise<CryptoKey | null> {
  try {
    return await select({ alg: algorithm, ...(keyId !== undefined && { kid: keyId }) })
  } catch {
    return null
  }
}

function unavailable(): ApiError {
  return new ApiError('service_unavailable', 'The keys of tokens cannot be fetched from their issuer.', {
    headers: { 'Retry-After': String(pauseMs / 1000) },
  })
}
