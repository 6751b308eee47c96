/**
 * Settings that all nodes of the cluster have in common, such as administrators that were created over HTTP. The
 * replicated metadata contains them under names of their own (docs/decisions/0021-cluster-wide-settings.md).
 */
import type { ControlPlane } from '@sectional/cluster'
import { ApiError } from '@sectional/core'
import { checkSettingLength } from '@sectional/http'
import { isClusterWide, putSetting, settingProblem, type EditableSettings, type Settings } from './settings.ts'

/** The section of the metadata that contains the settings, with `section/key` as the key. */
const metadataSection = 'config'
const prefix = `${metadataSection}/`

/** Every node keeps these settings in memory and in each snapshot of the metadata. Their lengths are bounded, too. */
const settingsMax = 1000

export class SharedSettings {
  readonly #control: Pick<ControlPlane, 'state' | 'setSetting' | 'onChange'>
  /** The metadata that `#settings` was read from. */
  #source: Readonly<Record<string, string>> | undefined
  #settings: Settings = new Map()

  constructor(control: Pick<ControlPlane, 'state' | 'setSetting' | 'onChange'>) {
    this.#control = control
  }

  /** Returns the settings; the same object as long as they do not change. Leaves out what this node does not accept. */
  read(): Settings {
    const source = this.#control.state()?.settings
    if (source !== this.#source) {
      this.#source = source
      this.#settings = parse(source ?? {})
    }
    return this.#settings
  }

  /**
   * Resolves once this node has applied the change. The other nodes in reach apply it at the same time.
   * @param value null removes the setting
   * @throws ApiError `service_unavailable` without a majority of the voters, `bad_request` beyond the limits
   */
  async write(section: string, key: string, value: string | null): Promise<void> {
    const name = `${section}/${key}`
    const names = Object.keys(this.#control.state()?.settings ?? {}).filter(known => known.startsWith(prefix))
    if (value !== null && names.length >= settingsMax && !names.includes(prefix + name)) {
      throw new ApiError('bad_request', `${name}: all nodes together have ${settingsMax} settings, and may have no `
        + 'more. Remove some, or write it to the configuration files of the nodes.')
    }
    if (value !== null) checkSettingLength(section, key, value)
    await this.#control.setSetting(metadataSection, name, value)
  }

  /** Returns a function that unsubscribes the listener. */
  onChange(listener: () => void): () => void {
    return this.#control.onChange(listener)
  }
}

function parse(source: Readonly<Record<string, string>>): Settings {
  const settings: EditableSettings = new Map()
  for (const [name, value] of Object.entries(source)) {
    if (!name.startsWith(prefix)) continue
    const slash = name.indexOf('/', prefix.length)
    const [section, key] = [name.slice(prefix.length, slash), name.slice(slash + 1)]
    if (isClusterWide(section, key) && settingProblem(section, key, value) === null) {
      putSetting(settings, section, key, value)
    }
  }
  return settings
}
