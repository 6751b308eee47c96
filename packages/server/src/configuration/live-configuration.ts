/** The configuration of a running node, which the HTTP API reads and changes. */
import { ApiError } from '@sectional/core'
import { LiveOptions } from '@sectional/core/options'
import type { OptionTable, OptionValues } from '@sectional/core/options'
import type { Configuration, ConfigurationSections } from '@sectional/http'
import { editIni, fitsIni, parseIni } from './ini-file.ts'
import { isSecretSetting, layerSettings, settingProblem, type IniFile, type Settings } from './settings.ts'

/** Access to the INI files: on disk in production, in memory in tests and in the simulator. */
export interface ConfigurationFiles {
  /** Returns the files in ascending order of priority; the API writes to the last one. */
  read(): Promise<readonly IniFile[]>
  /** Replaces one file; durable when resolved. */
  write(file: IniFile): Promise<void>
}

export type EditableSettings = Map<string, Map<string, string>>

/** The section with the server administrators. */
export const adminSection = 'admins'

export class LiveConfiguration implements Configuration {
  readonly #files: ConfigurationFiles
  readonly #environment: Readonly<Record<string, string | undefined>>
  #defaults: Settings
  #settings: EditableSettings
  #sections: ConfigurationSections | undefined
  readonly #listeners = new Set<() => void>()
  readonly #live: LiveOptions<OptionTable>[] = []
  /** Administrators whose removal is being written to the files. */
  readonly #leaving = new Set<string>()
  #beforeReload: (settings: EditableSettings) => Promise<void> = () => Promise.resolve()
  /** Settles when the last write to a file has ended; writes are serialized. */
  #lastWrite: Promise<void> = Promise.resolve()

  private constructor(
    files: ConfigurationFiles, environment: Readonly<Record<string, string | undefined>>, contents: readonly IniFile[],
  ) {
    this.#files = files
    this.#environment = environment
    this.#defaults = layerSettings(contents.filter(file => file.shipped), {})
    this.#settings = copyOf(layerSettings(contents, environment))
  }

  static async load(
    files: ConfigurationFiles, environment: Readonly<Record<string, string | undefined>>,
  ): Promise<LiveConfiguration> {
    return new LiveConfiguration(files, environment, await files.read())
  }

  settings(): Settings {
    return this.#settings
  }

  sections(): ConfigurationSections {
    this.#sections ??= Object.fromEntries([...this.#settings].filter(([, keys]) => keys.size > 0)
      .map(([section, keys]) => [section, Object.fromEntries(keys)]))
    return this.#sections
  }

  get(section: string, key: string): string | undefined {
    return this.#settings.get(section)?.get(key)
  }

  isSecret(section: string, key: string): boolean {
    return isSecretSetting(section, key)
  }

  /**
   * Returns the values of a table's options. The values of `live` options change when the settings change.
   * @throws Error for a value that its option refuses
   */
  options<Table extends OptionTable>(table: Table): OptionValues<Table> {
    const live = new LiveOptions(table, (section, key) => this.get(section, key))
    this.#live.push(live)
    return live.values
  }

  async set(section: string, key: string, value: string, options: { readonly persist: boolean }): Promise<void> {
    const problem = settingProblem(section, key, value)
    if (problem !== null) throw new ApiError('bad_request', `${section}/${key}: ${problem}`)
    if (!fitsIni(section, key, value)) {
      throw new ApiError('bad_request', `${section}/${key} cannot be kept in a configuration file: it has a line `
        + 'break, a ";" after a blank, or a name that would be read back differently')
    }
    if (options.persist) await this.#persist(section, key, value)
    this.#put(section, key, value)
  }

  /** @throws ApiError `forbidden` for the last administrator, without whom nobody could use the node any more */
  async delete(section: string, key: string, options: { readonly persist: boolean }): Promise<void> {
    if (section === adminSection) return this.#deleteAdministrator(key, options)
    if (options.persist) await this.#persist(section, key, null)
    this.#put(section, key, this.#defaults.get(section)?.get(key))
  }

  async #deleteAdministrator(name: string, { persist }: { readonly persist: boolean }): Promise<void> {
    this.#leaving.add(name)
    try {
      const others = [...this.#settings.get(adminSection) ?? []]
        .filter(([other, password]) => password !== '' && !this.#leaving.has(other))
      if (others.length === 0) {
        throw new ApiError('forbidden', `${name} is the last administrator, and cannot be removed`)
      }
      if (persist) await this.#persist(adminSection, name, null)
      this.#put(adminSection, name, undefined)
    } finally {
      this.#leaving.delete(name)
    }
  }

  /** If `beforeReload` or the files refuse, nothing changes. */
  async reload(): Promise<void> {
    await this.#lastWrite
    const contents = await this.#files.read()
    const settings = copyOf(layerSettings(contents, this.#environment))
    await this.#beforeReload(settings)
    this.#defaults = layerSettings(contents.filter(file => file.shipped), {})
    this.#settings = settings
    this.#changed()
  }

  /**
   * Sets the function that sees the settings of each reload before they take effect. It may change them, and refuses
   * them by an ApiError.
   */
  beforeReload(check: (settings: EditableSettings) => Promise<void>): void {
    this.#beforeReload = check
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  #changed(): void {
    this.#sections = undefined
    for (const live of this.#live) live.refresh()
    for (const listener of [...this.#listeners]) listener()
  }

  #put(section: string, key: string, value: string | undefined): void {
    const keys = this.#settings.get(section) ?? new Map<string, string>()
    if (value === undefined) keys.delete(key)
    else keys.set(key, value)
    this.#settings.set(section, keys)
    this.#changed()
  }

  /**
   * Replaces a value in memory and in every file that contains it, so that no file keeps the old value (a password in
   * plain text). A value from the environment is replaced in memory only.
   */
  async replace(section: string, key: string, value: string): Promise<void> {
    await this.replaceInFiles(section, key, value)
    this.#put(section, key, value)
  }

  /** Replaces a value in every file that contains it, and not in memory. */
  replaceInFiles(section: string, key: string, value: string): Promise<void> {
    return this.#edit(file =>
      parseIni(file.text).get(section)?.has(key) ? editIni(file.text, section, key, value) : file.text)
  }

  /**
   * Writes a value to the last file. A removal applies to every file, because a value in an earlier one would become
   * effective otherwise.
   */
  #persist(section: string, key: string, value: string | null): Promise<void> {
    return this.#edit((file, isLast) => value === null || isLast ? editIni(file.text, section, key, value) : file.text)
  }

  #edit(change: (file: IniFile, isLast: boolean) => string): Promise<void> {
    const write = this.#lastWrite.then(async () => {
      const files = (await this.#files.read()).filter(file => !file.shipped)
      for (const file of files) {
        const text = change(file, file === files.at(-1))
        if (text !== file.text) await this.#files.write({ name: file.name, text })
      }
    })
    // The caller receives the error; the next write is tried independently of it.
    this.#lastWrite = write.catch(() => undefined)
    return write
  }
}

function copyOf(settings: Settings): EditableSettings {
  return new Map([...settings].map(([section, keys]) => [section, new Map(keys)]))
}
