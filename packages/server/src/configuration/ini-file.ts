/**
 * INI text by CouchDB's rules, which the npm parsers do not share (docs/decisions/0004-ini-files.md): a comment
 * is a line that begins with `;` or what follows a blank and `;`; everything else of a value counts as written,
 * `#`, quotes and backslashes too; a key may contain `=` when ` = ` separates it. Editing changes one line and
 * keeps the comments.
 */

export type IniSections = ReadonlyMap<string, ReadonlyMap<string, string>>

interface SectionLine { readonly kind: 'section'; readonly name: string }
interface SettingLine { readonly kind: 'setting'; readonly key: string; readonly value: string }
type Line = SectionLine | SettingLine | { readonly kind: 'other' }

function parseLine(line: string): Line {
  const text = line.trim()
  if (text === '' || text.startsWith(';') || text.startsWith('#')) return { kind: 'other' }
  const section = /^\[([^\]]+)\]/.exec(text)?.[1]
  if (section !== undefined) return { kind: 'section', name: section.trim() }
  const spaced = text.indexOf(' = ')
  const equals = spaced >= 0 ? spaced + 1 : text.indexOf('=')
  if (equals <= 0) return { kind: 'other' }
  return { kind: 'setting', key: text.slice(0, equals).trim(), value: withoutComment(text.slice(equals + 1)).trim() }
}

function withoutComment(value: string): string {
  const comment = /(^|[ \t]);/.exec(value)
  return comment ? value.slice(0, comment.index) : value
}

/** Later settings of the same key win; settings before the first section are ignored. */
export function parseIni(text: string): IniSections {
  const sections = new Map<string, Map<string, string>>()
  let current: Map<string, string> | undefined
  for (const rawLine of text.split(/\r?\n/)) {
    const line = parseLine(rawLine)
    if (line.kind === 'section') {
      current = sections.get(line.name) ?? new Map()
      sections.set(line.name, current)
    } else if (line.kind === 'setting') {
      current?.set(line.key, line.value)
    }
  }
  return sections
}

/** Whether the setting comes back from a file as it was given: no line breaks, no ` ;`, no blanks around it ... */
export function fitsIni(section: string, key: string, value: string): boolean {
  if (/[\r\n]/.test(section + key + value)) return false
  const parsed = parseIni(editIni('', section, key, value))
  return parsed.size === 1 && parsed.get(section)?.get(key) === value
}

/** The text with the setting replaced where it stands last, or added to its section. `null` removes it everywhere. */
export function editIni(text: string, section: string, key: string, value: string | null): string {
  const lines = text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/)
  const found: number[] = []
  let lastOfSection = -1
  let current: string | undefined
  lines.forEach((rawLine, index) => {
    const line = parseLine(rawLine)
    if (line.kind === 'section') current = line.name
    if (current !== section || rawLine.trim() === '') return
    lastOfSection = index
    if (line.kind === 'setting' && line.key === key) found.push(index)
  })
  if (value === null) return joinLines(lines.filter((_, index) => !found.includes(index)))
  const setting = `${key} = ${value}`
  const last = found.at(-1)
  if (last !== undefined) lines[last] = setting
  else if (lastOfSection >= 0) lines.splice(lastOfSection + 1, 0, setting)
  else lines.push(...(lines.length > 0 ? [''] : []), `[${section}]`, setting)
  return joinLines(lines)
}

function joinLines(lines: readonly string[]): string {
  return lines.length === 0 ? '' : lines.join('\n') + '\n'
}
