/**
 * Parses INI text by CouchDB's rules, which the npm parsers do not follow (docs/decisions/0004-ini-files.md). A comment
 * is a line that begins with `;`, or the text after a blank and `;`. All other characters of a value are literal,
 * including `#`, quotes and backslashes. A key may contain `=` when ` = ` separates it from its value. Editing changes
 * one line and preserves the comments.
 */

export type IniSections = ReadonlyMap<string, ReadonlyMap<string, string>>

interface SectionLine { readonly kind: 'section'; readonly name: string }
interface SettingLine {
  readonly kind: 'setting'
  readonly key: string
  readonly value: string
  /** Begins with `;`, or is empty. */
  readonly comment: string
}
type Line = SectionLine | SettingLine | { readonly kind: 'other' }

function parseLine(line: string): Line {
  const text = line.trim()
  if (text === '' || text.startsWith(';') || text.startsWith('#')) return { kind: 'other' }
  const section = /^\[([^\]]+)\]/.exec(text)?.[1]
  if (section !== undefined) return { kind: 'section', name: section.trim() }
  const spaced = text.indexOf(' = ')
  const equals = spaced >= 0 ? spaced + 1 : text.indexOf('=')
  if (equals <= 0) return { kind: 'other' }
  const [rest, key] = [text.slice(equals + 1), text.slice(0, equals).trim()]
  const end = /(^|[ \t]);/.exec(rest)?.index ?? rest.length
  return { kind: 'setting', key, value: rest.slice(0, end).trim(), comment: rest.slice(end).trim() }
}

function settingText(key: string, value: string, comment: string): string {
  return `${key} = ${value}${comment === '' ? '' : ` ${comment}`}`
}

/** A later setting replaces an earlier one of the same key; settings before the first section are ignored. */
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

/** Returns the number of the line, from 1, that sets the value; undefined when there is none. */
export function findLine(text: string, section: string, key: string): number | undefined {
  let current: string | undefined
  let found: number | undefined
  text.split(/\r?\n/).forEach((rawLine, index) => {
    const line = parseLine(rawLine)
    if (line.kind === 'section') current = line.name
    else if (line.kind === 'setting' && current === section && line.key === key) found = index + 1
  })
  return found
}

/**
 * Whether a setting that is written to a file is read back unchanged: it has no line breaks, no ` ;`, no blanks around
 * it, and so on.
 */
export function fitsIni(section: string, key: string, value: string): boolean {
  if (/[\r\n]/.test(section + key + value)) return false
  const parsed = parseIni(editIni('', section, key, value))
  return parsed.size === 1 && parsed.get(section)?.get(key) === value
}

/**
 * Replaces the last occurrence of the setting, or adds it to its section. `null` removes all occurrences, and then the
 * section if nothing is left in it.
 */
export function editIni(text: string, section: string, key: string, value: string | null): string {
  const lines = text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/)
  const found: number[] = []
  let comment = ''
  let lastOfSection = -1
  let current: string | undefined
  lines.forEach((rawLine, index) => {
    const line = parseLine(rawLine)
    if (line.kind === 'section') current = line.name
    if (current !== section || rawLine.trim() === '') return
    lastOfSection = index
    if (line.kind !== 'setting' || line.key !== key) return
    found.push(index)
    comment = line.comment
  })
  if (value === null) {
    if (found.length === 0) return text
    return joinLines(withoutEmptySection(lines.filter((_, index) => !found.includes(index)), section))
  }
  const setting = settingText(key, value, comment)
  const last = found.at(-1)
  if (last !== undefined) lines[last] = setting
  else if (lastOfSection >= 0) lines.splice(lastOfSection + 1, 0, setting)
  else lines.push(...(lines.length > 0 ? [''] : []), `[${section}]`, setting)
  return joinLines(lines)
}

/** Replaces the values of a section, also those that a later line overrides. All else stays as it is. */
export async function replaceValues(
  text: string, section: string, replace: (key: string, value: string) => Promise<string>,
): Promise<string> {
  const lines = text.split('\n')
  let current: string | undefined
  for (const [index, rawLine] of lines.entries()) {
    const line = parseLine(rawLine)
    if (line.kind === 'section') current = line.name
    if (line.kind !== 'setting' || current !== section) continue
    const value = await replace(line.key, line.value)
    if (value === line.value) continue
    lines[index] = settingText(line.key, value, line.comment) + (rawLine.endsWith('\r') ? '\r' : '')
  }
  return lines.join('\n')
}

function withoutEmptySection(lines: readonly string[], section: string): readonly string[] {
  const left: string[] = []
  for (let at = 0; at < lines.length; at++) {
    const heading = parseLine(lines[at]!)
    if (heading.kind === 'section' && heading.name === section) {
      let next = at + 1
      while (next < lines.length && lines[next]!.trim() === '') next++
      if (next === lines.length || parseLine(lines[next]!).kind === 'section') {
        at = next - 1
        continue
      }
    }
    left.push(lines[at]!)
  }
  while (left.at(-1)?.trim() === '') left.pop()
  return left
}

function joinLines(lines: readonly string[]): string {
  return lines.length === 0 ? '' : lines.join('\n') + '\n'
}
