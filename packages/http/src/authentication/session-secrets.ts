/**
 * The secrets that sign session cookies. The current one is `chttpd_auth/secret` when it is configured. Otherwise it is
 * the generated session secret, which is created at the first login and kept by the control plane, so that a session is
 * valid on every node. After a change the previous secret stays valid for the maximum age of a session. Each node
 * remembers it in memory. When the secret is changed for all nodes, the previous one is also written to the metadata
 * before the change, so that nodes which were away or start again accept it, too. Before a configured secret is
 * removed, another one is generated: the earlier one may have been replaced because it had become known to others.
 */
import type { ControlPlane } from '@sectional/cluster'
import type { Clock, Random } from '@sectional/runtime'
import type { Configuration } from '../settings/configuration.ts'
import { httpDeclarations, type HttpOptions } from '../settings/http-options.ts'

/** The generated session secret is stored in the metadata under the name of the configuration option. */
const { section, key, name } = httpDeclarations.sessionSecret
const secretBytes = 32
/** Maximum number of previous secrets that are kept. */
const previousMax = 4
/** The previous secrets in the metadata: a JSON array of `PreviousSecret`, newest first. */
const previousSection = 'session'
const previousKey = 'previous_secrets'

interface PreviousSecret {
  readonly secret: string
  /** Milliseconds since 1970 until which the secret is valid. */
  readonly until: number
}

export interface SessionSecretsParts {
  readonly control: Pick<ControlPlane, 'state' | 'onChange' | 'setSetting'>
  readonly configuration: Pick<Configuration, 'onChange'>
  readonly options: Pick<HttpOptions, 'sessionSecret' | 'sessionSeconds'>
  readonly clock: Pick<Clock, 'now'>
  readonly random: Random
}

export class SessionSecrets {
  readonly #parts: SessionSecretsParts
  readonly #unsubscribe: readonly (() => void)[]
  #newest: string | undefined
  #previous: readonly PreviousSecret[] = []
  /** The text of the metadata that was parsed last, and its secrets. */
  #recorded: { readonly text: string | undefined; readonly secrets: readonly PreviousSecret[] } =
    { text: undefined, secrets: [] }
  #making: Promise<void> | undefined

  constructor(parts: SessionSecretsParts) {
    this.#parts = parts
    // The time of a previous secret begins when its end is seen, so a node on which nobody logs in must look, too.
    const look = (): void => { this.#look() }
    this.#unsubscribe = [parts.control.onChange(look), parts.configuration.onChange(look)]
    this.#look()
  }

  stop(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
  }

  /** Returns the valid secrets, newest first. The list is empty before the first login. */
  valid(): readonly string[] {
    const newest = this.#look()
    const recorded = this.#readRecorded()
    if (this.#previous.length === 0 && recorded.length === 0) return newest === undefined ? [] : [newest]
    const now = this.#parts.clock.now()
    this.#previous = this.#previous.filter(({ until }) => now < until)
    const previous = [...this.#previous, ...recorded.filter(({ until }) => now < until)].map(({ secret }) => secret)
    return newest === undefined ? previous : [newest, ...previous]
  }

  /**
   * Returns the secret for new cookies. @throws ApiError `service_unavailable` when the cluster has none yet and no
   * majority of the control plane answers
   */
  async signing(): Promise<string> {
    const known = this.#look()
    if (known !== undefined) return known
    this.#making ??= generateSecret(this.#parts).finally(() => { this.#making = undefined })
    await this.#making
    return this.signing()
  }

  #readRecorded(): readonly PreviousSecret[] {
    const text = this.#parts.control.state()?.settings[`${previousSection}/${previousKey}`]
    if (text !== this.#recorded.text) this.#recorded = { text, secrets: parsePrevious(text) }
    return this.#recorded.secrets
  }

  #look(): string | undefined {
    const { clock, options } = this.#parts
    const secret = currentSecret(this.#parts)
    if (secret === this.#newest) return secret
    if (this.#newest !== undefined) {
      const until = clock.now() + options.sessionSeconds * 1000
      this.#previous = [{ secret: this.#newest, until }, ...this.#previous].slice(0, previousMax)
    }
    this.#newest = secret
    return secret
  }
}

/**
 * Writes the secrets that are valid now to the metadata, as previous ones. Call this before the secret of all nodes
 * changes.
 * @throws ApiError `service_unavailable` without a majority of the voters
 */
export async function recordPreviousSecrets(
  parts: Pick<SessionSecretsParts, 'control' | 'options' | 'clock'>,
): Promise<void> {
  const { control, options, clock } = parts
  const current = currentSecret(parts)
  if (current === undefined) return
  const now = clock.now()
  const earlier = parsePrevious(control.state()?.settings[`${previousSection}/${previousKey}`])
    .filter(({ secret, until }) => now < until && secret !== current)
  const previous = [{ secret: current, until: now + options.sessionSeconds * 1000 }, ...earlier].slice(0, previousMax)
  await control.setSetting(previousSection, previousKey, JSON.stringify(previous))
}

/**
 * Generates another secret if there is one, and a configured one is in use. Call this before that one is removed.
 * @throws ApiError `service_unavailable` without a majority of the voters
 */
export async function replaceGeneratedSecret(
  parts: Pick<SessionSecretsParts, 'control' | 'options' | 'random'>,
): Promise<void> {
  if (parts.options.sessionSecret === '' || parts.control.state()?.settings[name] === undefined) return
  await generateSecret(parts)
}

function generateSecret({ control, random }: Pick<SessionSecretsParts, 'control' | 'random'>): Promise<void> {
  return control.setSetting(section, key, Buffer.from(random.bytes(secretBytes)).toString('hex'))
}

function currentSecret({ control, options }: Pick<SessionSecretsParts, 'control' | 'options'>): string | undefined {
  return options.sessionSecret !== '' ? options.sessionSecret : control.state()?.settings[name]
}

function parsePrevious(text: string | undefined): readonly PreviousSecret[] {
  return text === undefined ? [] : JSON.parse(text) as readonly PreviousSecret[]
}
