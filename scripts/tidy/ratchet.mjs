// Limits with exceptions that are listed by name in tidy-exceptions.json and may only shrink.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { functions } from './scanner.mjs'

const exceptionsFile = 'scripts/tidy-exceptions.json'
const columnsMax = 120

/** By kind: what is counted, how many there may be, and what to do. A kind that lags may fall below its exceptions. */
const kinds = {
  files: { unit: 'lines', limit: 600, advice: 'find the better cut' },
  functions: { unit: 'lines', limit: 70, advice: 'find the better cut' },
  columns: { unit: `lines over ${columnsMax} columns`, limit: 0, advice: 'break them', lags: true },
}

export function ratchetFindings(root, files) {
  const exceptions = readExceptions(root)
  const counted = counts(files)
  const findings = []
  for (const [kind, { unit, limit, advice, lags }] of Object.entries(kinds)) {
    for (const [name, count] of counted[kind]) {
      const listed = exceptions[kind]?.[name]
      const change = `from ${listed} to ${count} ${unit}`
      if (listed === undefined) findings.push(`${name}: ${count} ${unit}, the limit is ${limit}; ${advice}`)
      else if (count > listed) findings.push(`${name}: grew ${change}; exceptions may only shrink`)
      else if (count < listed && !lags) findings.push(`${name}: shrank ${change}; ${shrinkCommand}`)
    }
    for (const name of Object.keys(exceptions[kind] ?? {})) {
      if (!counted[kind].has(name) && !lags) findings.push(`${name}: no exception any more; ${shrinkCommand}`)
    }
  }
  return findings
}

const shrinkCommand = 'run node scripts/tidy.mjs --shrink'

/** Lowers the exceptions to what is true now. A file that was moved takes its exception along. */
export function shrinkExceptions(root, files) {
  const exceptions = readExceptions(root)
  const counted = counts(files)
  const next = {}
  for (const kind of Object.keys(kinds)) {
    const listed = exceptions[kind] ?? {}
    const gone = Object.keys(listed).filter(name => !counted[kind].has(name))
    next[kind] = {}
    for (const [name, count] of counted[kind]) {
      const allowed = listed[name] ?? listed[gone.find(other => other.split('/').at(-1) === name.split('/').at(-1))]
      if (allowed !== undefined) next[kind][name] = Math.min(allowed, count)
    }
  }
  writeFileSync(join(root, exceptionsFile), JSON.stringify(next, null, 2) + '\n')
}

function readExceptions(root) {
  const path = join(root, exceptionsFile)
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {}
}

/** Everything over a limit: by kind and name how much. */
function counts(files) {
  return Object.fromEntries(Object.entries(kinds).map(([kind, { limit }]) => {
    const over = files.flatMap(file => measured[kind](file)).filter(([, count]) => count > limit)
    return [kind, new Map(over)]
  }))
}

const measured = {
  files: ({ path, text }) => [[path, text.split('\n').length - 1]],
  functions: ({ path, code, isSource }) =>
    isSource ? functions(code).map(({ name, lines }) => [`${path}#${name}`, lines]) : [],
  columns: ({ path, text }) => [[path, text.split('\n').filter(line => line.length > columnsMax).length]],
}
