// Returns the differences between an answer and the recorded one as lines of text.
import { isDeepStrictEqual } from 'node:util'

const ignored = '<ignored>'
const briefMax = 160

/** Returns the value at a path of names and indexes separated by dots, or undefined when the path does not exist. */
export function valueAt(value, path) {
  return path.split('.').reduce((found, key) => (found === undefined || found === null) ? undefined : found[key], value)
}

/** Replaces the value at the path by `<ignored>`. */
export function ignoreAt(value, path) {
  const keys = path.split('.')
  const last = keys.pop()
  const parent = keys.length > 0 ? valueAt(value, keys.join('.')) : value
  if (parent && typeof parent === 'object' && last in parent) parent[last] = ignored
}

/** @param got, want `{ status, headers, body }`, both normalised */
export function compareAnswers(got, want, setup) {
  if (!want) return ['no expectation recorded']
  const differences = []
  if (want.status !== got.status) differences.push(`status ${got.status}, expected ${want.status}`)
  if (setup) return differences
  if (want.headers !== ignored) differences.push(...compareHeaders(got.headers, want.headers))
  if (want.body !== ignored) differences.push(...compareValues(got.body, want.body, 'body'))
  return differences
}

function compareHeaders(got, want) {
  const names = Object.keys({ ...want, ...got })
  return names.filter(name => want[name] !== ignored && got[name] !== ignored && want[name] !== got[name])
    .map(name => `header ${name}: ${JSON.stringify(got[name])}, expected ${JSON.stringify(want[name])}`)
}

function compareValues(got, want, path) {
  if (want === ignored || isDeepStrictEqual(got, want)) return []
  if (Array.isArray(got) && Array.isArray(want)) {
    if (got.length !== want.length) {
      return [`${path}: ${got.length} items ${brief(got)}, expected ${want.length} ${brief(want)}`]
    }
    return want.flatMap((item, at) => compareValues(got[at], item, `${path}.${at}`))
  }
  if (isRecord(got) && isRecord(want)) {
    return [...new Set([...Object.keys(want), ...Object.keys(got)])].flatMap(key => compareMember(got, want, key, path))
  }
  return [`${path}: ${brief(got)}, expected ${brief(want)}`]
}

function compareMember(got, want, key, path) {
  if (!(key in got)) return want[key] === ignored ? [] : [`${path}.${key}: missing, expected ${brief(want[key])}`]
  if (!(key in want)) return got[key] === ignored ? [] : [`${path}.${key}: ${brief(got[key])}, expected none`]
  return compareValues(got[key], want[key], `${path}.${key}`)
}

function isRecord(value) {
  return value && typeof value === 'object' && !Array.isArray(value)
}

function brief(value) {
  const text = JSON.stringify(value) ?? 'undefined'
  return text.length > briefMax ? `${text.slice(0, briefMax - 3)}...` : text
}
