/** Limits of settings that are set over HTTP. Files may have larger ones. */
import { ApiError } from '@sectional/core'

/** Characters of the section and the key together. */
const settingNameLengthMax = 512
/** Characters of a value, and of a password that is replaced by its hash. */
const settingValueLengthMax = 16_384
/** Settings that a node keeps for changes over HTTP, in its file and in memory. */
export const settingsAddedMax = 1000

/** Characters of a name that an error shows. */
const shownMax = 100
const wayOut = 'write it to a configuration file of the node, where it may have more'

/** @throws ApiError `bad_request` */
export function checkSettingLength(section: string, key: string, value: string): void {
  const name = `${section}/${key}`
  const shown = name.length <= shownMax ? name : `${name.slice(0, shownMax)}...`
  const nameLength = section.length + key.length
  if (nameLength > settingNameLengthMax) {
    throw new ApiError('bad_request', `${shown}: section and key have ${nameLength} characters together; over HTTP `
      + `they may have ${settingNameLengthMax}. Use a shorter name, or ${wayOut}.`)
  }
  if (value.length > settingValueLengthMax) {
    throw new ApiError('bad_request', `${shown}: the value has ${value.length} characters; over HTTP it may have `
      + `${settingValueLengthMax}. Shorten it, or ${wayOut}.`)
  }
}
