/**
 * The secrets that sign session cookies. The current one is `chttpd_auth/secret` when it is configured. Otherwise it is
 * the secret of the cluster, which is created at the first login and kept by the control plane, so that a session is
 * valid on every node. After a change the previous secret stays valid for the maximum age of a session.
 */
import type { ControlPlane } from '@sectional/cluster'
import type { Clock, Random } from '@sectional/runtime'
import { httpDeclarations, type HttpOptions } from '../settings/http-options.ts'

/** The cluster's secret is stored in the metadata under the name of the configuration option. */
const { section, key, name } = httpDeclarations.sessionSecret
const secretBytes = 32
/** Maximum number of previous secrets that are kept. */
const previousMax = 4

export interface SessionSecretsParts {
  readonly control: Pick<ControlPlane, 'state' | 'onChange' | 'setSetting'>
  readonly options: Pick<HttpOptions, 'sessionSecret' | 'sessionSeconds'>
  readonly clock: Clock
  readonly random: Random
}

export class SessionSecrets {
  readonly #parts: SessionSecretsParts
  readonly #unsubscribe: () => void
  #newest: string | undefined
  #previous: readonly { readonly secret: string; readonly until: number }[] = []
  #making: Promise<void> | undefined

  constructor(parts: SessionSecretsParts) {
    this.#parts = parts
    this.#unsubscribe = parts.control.onChange(() => { this.#look() })
    this.#look()
  }

  stop(): void {
    this.#unsubscribe()
  }

  /** Returns the valid secrets, newest first. The list is empty before the first login. */
  valid(): readonly string[] {
    const newest = this.#look()
    if (this.#previous.length === 0) return newest === undefined ? [] : [newest]
    const now = this.#parts.clock.now()
    this.#previous = this.#previous.filter(({ until }) => now < until)
    return [...(newest === undefined ? [] : [newest]), ...this.#previous.map(({ secret }) => secret)]
  }

  /**
   * Returns the secret for new cookies. @throws ApiError `service_unavailable` when the cluster has none yet and no
   * majority of the control plane answers
   */
  async signing(): Promise<string> {
    const known = this.#look()
    if (known !== undefined) return known
    this.#making ??= this.#make().finally(() => { this.#making = undefined })
    await this.#making
    return this.signing()
  }

  #make(): Promise<void> {
    const { control, random } = this.#parts
    return control.setSetting(section, key, Buffer.from(random.bytes(secretBytes)).toString('hex'))
  }

  #look(): string | undefined {
    const { control, clock, options } = this.#parts
    const secret = options.sessionSecret !== '' ? options.sessionSecret : control.state()?.settings[name]
    if (secret === this.#newest) return secret
    if (this.#newest !== undefined) {
      const until = clock.now() + options.sessionSeconds * 1000
      this.#previous = [{ secret: this.#newest, until }, ...this.#previous].slice(0, previousMax)
    }
    this.#newest = secret
    return secret
  }
}
