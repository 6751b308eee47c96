/** The configuration of a running node, which the HTTP API reads and changes. */
import { ApiError } from '@sectional/core'
import { LiveOptions } from '@sectional/core/options'
import type { OptionTable, OptionValues } from '@sectional/core/options'
import {
  accessProblem, checkSettingLength, settingsAddedMax, tokenKeysSection, type Configuration, type ConfigurationSections,
} from '@sectional/http'
import { findProblems, startProblem } from './configuration-problems.ts'
import { declaredOptions, findOpenSection, findOption } from './declarations.ts'
import { editIni, fitsIni, parseIni, replaceValues } from './ini-file.ts'
import { isLoggedSetting, isSecretSetting, shownSetting } from './secret-settings.ts'
import {
  combineSettings, ConfigurationError, defaultSettings, effectiveSettings, isClusterWide, isFilesOnly, ownSettings,
  putSetting, settingDefect, settingProblem, type EditableSettings, type IniFile, type Settings,
} from './settings.ts'

/** The settings that all nodes have in common. */
export interface SettingsOfAllNodes {
  /** Returns the same object as long as nothing changes. */
  read(): Settings
  /** Resolves once `read` returns the change. */
  write(section: string, key: string, value: string | null): Promise<void>
  onChange(listener: () => void): () => void
}

/** Access to the INI files: on disk in production, in memory in tests and in the simulator. */
export interface ConfigurationFiles {
  /**
   * Returns the files in ascending order of priority. The last one belongs to the node: it receives the changes that
   * the API makes, and may be empty.
   */
  read(): Promise<readonly IniFile[]>
  /** Replaces one file; durable when resolved. When it rejects, the file may have the old or the new text. */
  write(file: IniFile): Promise<void>
}

/** Returns the value that replaces one of a section, or the same value. */
export type ReplaceValue = (key: string, value: string) => Promise<string>
/** Replaces the values of a section in every file, also those that another line, file or the environment overrides. */
export type ReplaceInFiles = (section: string, replace: ReplaceValue) => Promise<void>

/** The section with the server administrators. */
export const adminSection = 'admins'

/** The first lines of the file with the changes of the API. */
const changesFileHead = '; Written by the node: settings that were changed over HTTP (/_node/{name}/_config).\n'
  + '; They override those of all other files.\n'

/** The layers of a node's settings. A later one overrides an earlier one. */
interface Layers {
  readonly defaults: Settings
  readonly shared: Settings
  readonly own: Settings
  /** Settings of `own` that are in memory only, as `section/key`. */
  readonly unsaved: ReadonlySet<string>
}

/** Problems of which a refused reload reports the texts. */
const reportedProblemsMax = 10

export class LiveConfiguration implements Configuration {
  readonly #files: ConfigurationFiles
  readonly #environment: Readonly<Record<string, string | undefined>>
  #defaults: Settings
  /** What all nodes have in common. */
  #shared: Settings = new Map()
  /** What files, environment and changes of the API to this node have set. */
  #own: Settings
  /** Settings of `#own` that only a change without persistence has set, as `section/key`. */
  #unsaved: ReadonlySet<string> = new Set()
  /** Settings that were removed from `#own` and come back with the files or the environment, as `section/key`. */
  #returning: ReadonlySet<string> = new Set()
  /** `#own` over `#shared` over `#defaults`; former names where present ones are not set. */
  #saved: Settings
  /** The settings in effect: `#saved` with `#kept`. */
  #settings: Settings
  /** The texts with which the node was started, of options that need a restart, by their names. */
  readonly #started: ReadonlyMap<string, string | undefined>
  /** Those of `#started` that the last reload has found changed. */
  #kept: ReadonlyMap<string, string | undefined> = new Map()
  #sections: ConfigurationSections | undefined
  /** Undefined before the node follows the metadata of the cluster. */
  #ofAllNodes: SettingsOfAllNodes | undefined
  readonly #listeners = new Set<() => void>()
  readonly #live: LiveOptions<OptionTable>[] = []
  #beforeReload: (own: EditableSettings, replace: ReplaceInFiles) => Promise<void> = () => Promise.resolve()
  #beforeSet: (section: string, key: string, value: string) => Promise<void> = () => Promise.resolve()
  #apply: (settings: Settings) => Promise<void> = () => Promise.resolve()
  /** Settles when the last change has ended. Changes are made one after the other, so that files and memory agree. */
  #lastChange: Promise<unknown> = Promise.resolve()

  private constructor(
    files: ConfigurationFiles, environment: Readonly<Record<string, string | undefined>>, contents: readonly IniFile[],
  ) {
    this.#files = files
    this.#environment = environment
    this.#defaults = defaultSettings(contents)
    this.#own = ownSettings(contents, environment)
    this.#saved = effectiveSettings(this.#defaults, this.#own)
    this.#settings = this.#saved
    this.#started = new Map(declaredOptions.filter(({ effect }) => effect === 'restart')
      .map(({ section, key, name }) => [name, this.get(section, key)]))
  }

  static async load(
    files: ConfigurationFiles, environment: Readonly<Record<string, string | undefined>>,
  ): Promise<LiveConfiguration> {
    return new LiveConfiguration(files, environment, await files.read())
  }

  /** @throws ConfigurationError with one line for each wrong value, with its file and line */
  async check(): Promise<void> {
    const problems = findProblems(await this.#files.read(), this.#environment)
    if (problems.length > 0) throw new ConfigurationError(problems.join('\n'))
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

  /** Returns the value that the node would start with. */
  saved(section: string, key: string): string | undefined {
    return this.#saved.get(section)?.get(key)
  }

  isSecret(section: string, key: string): boolean {
    return isSecretSetting(section, key)
  }

  isLogged(section: string, key: string): boolean {
    return isLoggedSetting(section, key)
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

  isShared(section: string, key: string): boolean {
    const name = `${section}/${key}`
    return this.#ofAllNodes !== undefined && isClusterWide(section, key) && !this.#returning.has(name)
      && (!hasSetting(this.#own, section, key) || this.#unsaved.has(name))
  }

  /**
   * @throws ApiError `bad_request` for a value that the option refuses or that the node would not start with, and for
   * too many settings; `forbidden` for what only files may set; `service_unavailable` when the file of the node cannot
   * be written, or when a setting of all nodes cannot be stored without a majority
   */
  async set(section: string, key: string, value: string, { persist }: { readonly persist: boolean }): Promise<void> {
    checkSetting(section, key, value)
    if (persist && this.isShared(section, key)) return this.#share(section, key, value)
    return this.#exclusively(async () => {
      await this.#checkCount(section, key)
      const own = combineSettings(this.#own)
      putSetting(own, section, key, value)
      this.#checkStart(own, section, key)
      await this.#beforeSet(section, key, value)
      const name = `${section}/${key}`
      const unsaved = new Set(this.#unsaved)
      if (persist) unsaved.delete(name)
      else if (!hasSetting(this.#own, section, key)) unsaved.add(name)
      this.#checkAccess({ own, unsaved }, `${name}: `)
      await this.#applyChange({ own }, `${name}: `, async () => {
        if (persist) await this.#writeChange(section, key, value)
      })
      this.#unsaved = unsaved
      if (persist) this.#returning = new Set([...this.#returning].filter(returning => returning !== name))
      this.#become(own, name)
    })
  }

  async removable(section: string, key: string): Promise<string | undefined> {
    const files = (await this.#files.read()).filter(file => !file.shipped)
    const written = findOpenSection(section) === undefined ? files.slice(-1) : files
    return ownSettings(written, {}).get(section)?.get(key)
  }

  /**
   * @throws ApiError `forbidden` for the last administrator, without whom nobody could use the node any more. For a
   *   persistent removal, administrators that are in memory only do not count: the node could not start again.
   */
  async delete(section: string, key: string, { persist }: { readonly persist: boolean }): Promise<void> {
    refuseFilesOnly(section, key)
    const isOwn = hasSetting(this.#own, section, key)
    const isShared = hasSetting(this.#shared, section, key)
    if (isShared && !isOwn && !persist) {
      throw new ApiError('bad_request', `${section}/${key} is a setting of all nodes; repeat the request without `
        + 'X-Couch-Persist: false to remove it from all of them')
    }
    const removesOwn = isOwn || !isShared || this.#returning.has(`${section}/${key}`)
    if (removesOwn && isShared && persist) this.#checkRemoval(section, key)
    // First that of all nodes: without a majority the request fails, and then nothing has changed.
    if (isShared && persist) await this.#share(section, key, null)
    if (removesOwn) await this.#deleteOwn(section, key, persist)
  }

  /** @throws ApiError when the setting cannot be removed from this node and from all nodes together */
  #checkRemoval(section: string, key: string): void {
    const shared = combineSettings(this.#shared)
    shared.get(section)?.delete(key)
    this.#checkAccess({ shared, own: this.#withoutOwn(section, key, true) }, `${section}/${key}: `)
  }

  /** Returns the settings of this node without one. @throws ApiError when a node needs it */
  #withoutOwn(section: string, key: string, persist: boolean): Settings {
    const own = combineSettings(this.#own)
    own.get(section)?.delete(key)
    const left = administratorsOf(own).filter(([name]) => !persist || !this.#unsaved.has(`${adminSection}/${name}`))
    if (section === adminSection && left.length === 0) {
      throw new ApiError('forbidden', `${key} is the last administrator in the files of this node, and cannot be `
        + 'removed: a node needs one to start. Add another one to the files of this node first.')
    }
    this.#checkStart(own, section, key)
    return own
  }

  #deleteOwn(section: string, key: string, persist: boolean): Promise<void> {
    return this.#exclusively(async () => {
      const own = this.#withoutOwn(section, key, persist)
      this.#checkAccess({ own }, `${section}/${key}: `)
      await this.#applyChange({ own }, `${section}/${key}: `, async () => {
        if (persist) await this.#writeChange(section, key, null)
      })
      const name = `${section}/${key}`
      const returning = [...this.#returning].filter(other => other !== name)
      this.#returning = new Set(await this.#comesBack(section, key) ? [...returning, name] : returning)
      this.#become(own, name)
    })
  }

  /** Returns whether files or environment set it, so that it is there again after a reload. */
  async #comesBack(section: string, key: string): Promise<boolean> {
    try {
      return hasSetting(ownSettings(await this.#files.read(), this.#environment), section, key)
    } catch {
      // The removal has happened all the same.
      return true
    }
  }

  /**
   * Reads the files again. If a value is wrong or cannot be applied, or `beforeReload` or the files refuse, nothing
   * changes. Options that only a restart changes stay as they are.
   *
   * @returns the names of those that the files have changed, as `section/key`
   * @throws ApiError `bad_request` with the file, line, option and limit of each wrong value
   */
  reload(): Promise<readonly string[]> {
    return this.#exclusively(async () => {
      const contents = await this.#readForReload()
      const problems = findProblems(contents, this.#environment)
      if (problems.length > 0) {
        throw new ApiError(
          'bad_request', `Nothing was reloaded. ${problems.slice(0, reportedProblemsMax).join('; ')}`,
        )
      }
      const own = ownSettings(contents, this.#environment)
      const [defaults, unsaved] = [defaultSettings(contents), new Set<string>()]
      this.#checkAccess({ defaults, own, unsaved }, 'Nothing was reloaded: ')
      await this.#beforeReload(own, (section, replace) => this.#replaceInFiles(section, replace))
      await this.#applyChange({ defaults, own }, 'Nothing was reloaded: ')
      this.#kept = this.#keptAfter(effectiveSettings(defaults, this.#shared, own))
      this.#defaults = defaults
      this.#unsaved = unsaved
      this.#returning = new Set()
      this.#become(own)
      return [...this.#kept.keys()]
    })
  }

  /**
   * Sets the function that sees the settings of files and environment at each reload before they take effect. It may
   * change them, and refuses them by an ApiError.
   */
  beforeReload(check: (own: EditableSettings, replace: ReplaceInFiles) => Promise<void>): void {
    this.#beforeReload = check
  }

  /** Sets the function that sees each change of `set` to this node before it is made, and refuses it by an ApiError. */
  beforeSet(check: (section: string, key: string, value: string) => Promise<void>): void {
    this.#beforeSet = check
  }

  /**
   * Sets the function that applies what has to succeed before a change of this node is stored. When it rejects, the
   * change is refused with the message of its error. When a change cannot be stored, it is called with the settings in
   * effect. Returns a function that unsubscribes it.
   */
  applyFirst(apply: (settings: Settings) => Promise<void>): () => void {
    this.#apply = apply
    return () => { this.#apply = () => Promise.resolve() }
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  /**
   * Replaces the values of a section in memory and in every file, so that no file keeps the old ones (passwords in
   * plain text). A value from the environment is replaced in memory only.
   */
  replace(section: string, replace: ReplaceValue): Promise<void> {
    return this.#exclusively(async () => {
      await this.#replaceInFiles(section, replace)
      const own = combineSettings(this.#own)
      for (const [key, value] of own.get(section) ?? []) putSetting(own, section, key, await replace(key, value))
      this.#become(own)
    })
  }

  /** Follows the settings of all nodes. Returns a function that ends it. */
  follow(ofAllNodes: SettingsOfAllNodes): () => void {
    this.#ofAllNodes = ofAllNodes
    this.#readShared()
    const unsubscribe = ofAllNodes.onChange(() => {
      if (ofAllNodes.read() !== this.#shared) this.#readShared()
    })
    return () => {
      unsubscribe()
      this.#ofAllNodes = undefined
    }
  }

  async #share(section: string, key: string, value: string | null): Promise<void> {
    const name = `${section}/${key}`
    const shared = combineSettings(this.#shared)
    if (value === null) shared.get(section)?.delete(key)
    else putSetting(shared, section, key, value)
    this.#checkAccess({ shared, own: this.#withoutUnsaved(section, key) }, `${name}: `)
    await this.#ofAllNodes!.write(section, key, value)
    // A change of this node that is being made would bring back what was in memory only.
    await this.#exclusively(async () => {
      this.#own = this.#withoutUnsaved(section, key)
      this.#unsaved = new Set([...this.#unsaved].filter(unsaved => unsaved !== name))
      this.#readShared()
    })
  }

  /** Returns the settings of this node without one, if that is in memory only. */
  #withoutUnsaved(section: string, key: string): Settings {
    if (!this.#unsaved.has(`${section}/${key}`)) return this.#own
    const own = combineSettings(this.#own)
    own.get(section)?.delete(key)
    return own
  }

  #readShared(): void {
    const shared = this.#ofAllNodes?.read()
    if (shared === undefined) return
    this.#shared = shared
    this.#become(this.#own)
  }

  /** Returns those of `#started` of which a reload has brought other texts. Changes over HTTP are shown as before. */
  #keptAfter(reloaded: Settings): ReadonlyMap<string, string | undefined> {
    return new Map([...this.#started].filter(([name, started]) => {
      const { section, key } = splitName(name)
      const text = reloaded.get(section)?.get(key)
      // An option with an empty text has the same value as an unset one.
      return (text ?? '') !== (started ?? '') && text !== this.get(section, key)
    }))
  }

  /** @param changed the setting that was changed, as `section/key` */
  #become(own: Settings, changed?: string): void {
    this.#own = own
    this.#saved = effectiveSettings(this.#defaults, this.#shared, own)
    this.#kept = new Map([...this.#kept].filter(([name]) => name !== changed))
    this.#settings = withKept(this.#saved, this.#kept)
    this.#sections = undefined
    for (const live of this.#live) live.refresh()
    for (const listener of [...this.#listeners]) listener()
  }

  /**
   * Declared settings are not limited, since their number is.
   * @throws ApiError `bad_request` for a new setting when as many have been added over HTTP as may be
   */
  async #checkCount(section: string, key: string): Promise<void> {
    if (findOption(section, key) !== undefined || hasSetting(this.#settings, section, key)) return
    const changes = (await this.#files.read()).findLast(file => !file.shipped)!
    const saved = [...parseIni(changes.text).values()].reduce((sum, keys) => sum + keys.size, 0)
    if (saved + this.#unsaved.size < settingsAddedMax) return
    throw new ApiError('bad_request', `${section}/${key}: this node has ${settingsAddedMax} settings that were changed `
      + 'over HTTP, and may have no more. Remove some, or write it to a configuration file of the node.')
  }

  /** @throws ApiError `bad_request` when a node with these settings would not start */
  #checkStart(own: Settings, section: string, key: string): void {
    const error = startProblem(effectiveSettings(this.#defaults, this.#shared, own))
    if (error !== null) throw new ApiError('bad_request', `${section}/${key}: ${error.message}`)
  }

  /**
   * Refuses a change after which no administrator could log in, now or when the node has started again. Where none can
   * log in before the change, it is not the cause.
   * @throws ApiError `bad_request`
   */
  #checkAccess(changes: Partial<Layers>, prefix: string): void {
    const before = { defaults: this.#defaults, shared: this.#shared, own: this.#own, unsaved: this.#unsaved }
    const after = { ...before, ...changes }
    for (const view of [settingsInEffect, savedSettings]) {
      const problem = accessProblem(view(after))
      if (problem !== null && accessProblem(view(before)) === null) {
        throw new ApiError('bad_request', prefix + problem)
      }
    }
  }

  /** @throws ApiError `bad_request` when a change cannot be applied */
  async #applyChange(
    changes: Pick<Partial<Layers>, 'defaults' | 'own'>, prefix: string, store?: () => Promise<void>,
  ): Promise<void> {
    const { defaults = this.#defaults, own = this.#own } = changes
    try {
      await this.#apply(effectiveSettings(defaults, this.#shared, own))
    } catch (error) {
      throw new ApiError('bad_request', `${prefix}${(error as Error).message}`, { cause: error })
    }
    try {
      await store?.()
    } catch (error) {
      // The change is refused because of the first error; the function reports a second one itself.
      await this.#apply(this.#settings).catch(() => undefined)
      throw error
    }
  }

  async #readForReload(): Promise<readonly IniFile[]> {
    try {
      return await this.#files.read()
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error
      throw new ApiError('bad_request', `Nothing was reloaded. ${error.message}`, { cause: error })
    }
  }

  /**
   * Writes a value to the file of the node, or removes it there. An entry of an open section that another file has is
   * removed by an empty value, so that an administrator or a key does not come back with the next reload.
   */
  async #writeChange(section: string, key: string, value: string | null): Promise<void> {
    const files = (await this.#files.read()).filter(file => !file.shipped)
    const { name, text } = files.at(-1)!
    const elsewhere = files.slice(0, -1).some(file => (parseIni(file.text).get(section)?.get(key) ?? '') !== '')
    const written = value ?? (elsewhere && findOpenSection(section) !== undefined ? '' : null)
    const changed = editIni(text === '' ? changesFileHead : text, section, key, written)
    if (text === '' && changed === changesFileHead) return
    try {
      // Also the same text again: the process that wrote it may have been killed before it was durable.
      await this.#files.write({ name, text: changed })
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'unknown error'
      throw new ApiError('service_unavailable', `This node cannot write the file of its settings (${code}), `
        + (await this.#restoreFile({ name, text }) ? 'so nothing was changed.'
          : 'and may have the change after a restart. Repair or free the disk, and repeat the request.'),
      { cause: error })
    }
  }

  /** Returns whether a file has its text from before a change again, or still. */
  async #restoreFile(before: IniFile): Promise<boolean> {
    try {
      const present = (await this.#files.read()).find(({ name }) => name === before.name)
      if (present?.text !== before.text) await this.#files.write(before)
      return true
    } catch {
      return false
    }
  }

  async #replaceInFiles(section: string, replace: ReplaceValue): Promise<void> {
    for (const { name, text, shipped } of await this.#files.read()) {
      if (shipped) continue
      const changed = await replaceValues(text, section, replace)
      if (changed !== text) await this.#files.write({ name, text: changed })
    }
  }

  /** Runs a change when the earlier ones have ended. The caller receives its error. */
  #exclusively<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#lastChange.then(change)
    this.#lastChange = done.catch(() => undefined)
    return done
  }
}

/** Returns names and passwords, or hashes of passwords. */
export function administratorsOf(settings: Settings): readonly (readonly [name: string, password: string])[] {
  return [...settings.get(adminSection) ?? []].filter(([, password]) => password !== '')
}

function settingsInEffect({ defaults, shared, own }: Layers): Settings {
  return effectiveSettings(defaults, shared, own)
}

/** Returns the settings after a restart. */
function savedSettings({ defaults, shared, own, unsaved }: Layers): Settings {
  const settings = combineSettings(own)
  for (const name of unsaved) {
    const { section, key } = splitName(name)
    settings.get(section)?.delete(key)
  }
  return effectiveSettings(defaults, shared, settings)
}

function withKept(saved: Settings, kept: ReadonlyMap<string, string | undefined>): Settings {
  const settings = combineSettings(saved)
  for (const [name, text] of kept) {
    const { section, key } = splitName(name)
    if (text === undefined) settings.get(section)?.delete(key)
    else putSetting(settings, section, key, text)
  }
  return settings
}

function splitName(name: string): { readonly section: string; readonly key: string } {
  const slash = name.indexOf('/')
  return { section: name.slice(0, slash), key: name.slice(slash + 1) }
}

function hasSetting(settings: Settings, section: string, key: string): boolean {
  return settings.get(section)?.has(key) === true
}

/** @throws ApiError for a value that the option refuses, or that files or HTTP must not set */
function checkSetting(section: string, key: string, value: string): void {
  refuseFilesOnly(section, key)
  checkSettingLength(section, key, value)
  const problem = settingProblem(section, key, value) ?? settingDefect(section, key, value)
  if (problem !== null) {
    throw new ApiError('bad_request', `${section}/${key} = ${shownSetting(section, key, value)}: ${problem}`)
  }
  if (!fitsIni(section, key, value)) {
    const hint = section === tokenKeysSection ? ' (write \\n in its place)' : ''
    throw new ApiError('bad_request', `${section}/${key} cannot be kept in a configuration file: it has a line `
      + `break${hint}, a ";" after a blank, or a name that would be read back differently`)
  }
}

function refuseFilesOnly(section: string, key: string): void {
  if (!isFilesOnly(section, key)) return
  throw new ApiError('forbidden', `${section}/${key} can be changed only in the configuration files or the environment `
    + 'of the node, not over HTTP.')
}
