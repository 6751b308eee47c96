/** Lists of settings in the form of CouchDB: `[{section, key}, {"section", "*"}]`. */

export interface SettingName {
  readonly section: string
  /** `*` stands for all keys of the section. */
  readonly key: string
}

const listForm = /^\[\s*(?:\{[^{}]*\}\s*,?\s*)*\]$/
const entryForm = /\{\s*(?:"([^"]*)"|([\w-]+))\s*,\s*(?:"([^"]*)"|([\w-]+|\*))\s*\}/g

/** Returns null when the text has another form. */
export function parseSettingNames(text: string): SettingName[] | null {
  if (!listForm.test(text.trim())) return null
  const names = [...text.matchAll(entryForm)].map(([, quotedSection, section, quotedKey, key]) => (
    { section: quotedSection ?? section ?? '', key: quotedKey ?? key ?? '' }
  ))
  return names.length === text.split('{').length - 1 ? names : null
}

export function includesSetting(names: readonly SettingName[], section: string, key: string): boolean {
  return names.some(name => name.section === section && (name.key === '*' || name.key === key))
}
