// Finds effects outside `runtime`, and mutable state at module level.
import { lineAt } from './sources.mjs'

/** Node's modules without effects; of the others only the named exports. */
const pureNodeModules = new Set([
  'node:assert', 'node:assert/strict', 'node:buffer', 'node:path', 'node:path/posix', 'node:string_decoder', 'node:url',
  'node:util',
])
const pureNodeExports = {
  'node:crypto': new Set(['createHash', 'createHmac', 'createPublicKey', 'timingSafeEqual', 'hash', 'KeyObject']),
  'node:zlib': new Set(['crc32', 'gunzipSync', 'gzipSync']),
}

const bannedEffects = [
  [/\bnew Date\b|\bDate\.(now|UTC|parse)\b|\bDate\(/, 'Date'],
  [/(?<![.#\w])(setTimeout|setInterval|setImmediate|clearTimeout|clearInterval)\s*\(/, 'timers'],
  [/\bAbortSignal\.timeout\b/, 'AbortSignal.timeout'],
  [/(?<![.#\w])performance\./, 'performance'],
  [/\bMath\.random\b/, 'Math.random'],
  [/(?<![.#\w])crypto\.(random|getRandom|subtle|pbkdf2|scrypt)/, 'crypto'],
  [/(?<![.#\w])process\./, 'process'],
  [/(?<![.#\w])fetch\s*\(/, 'fetch'],
  // Every global reached by this name is one of the above, or no better.
  [/(?<![.#\w])(globalThis|global)\b(?!\s*:)/, 'globalThis'],
]

const bannedModuleState = [
  [/^(export\s+)?(let|var)\s/m, 'let'],
  [/^(export\s+)?const\s+\w+[^=\n]*=\s*(\[\s*\]|\{\s*\})\s*$/m, 'an empty collection'],
]

/** Where effects are at home: the runtime package and the command line. */
function mayHaveEffects(file) {
  return !file.isSource || file.packageName === 'runtime' || file.path === 'packages/server/src/cli.ts'
    || /^packages\/(server|simulator)\/src\/command-line\//.test(file.path)
}

export function effectFindings(file) {
  if (mayHaveEffects(file)) return []
  const findings = []
  for (const [pattern, name] of bannedEffects) {
    for (const line of linesMatching(file.code, pattern)) {
      findings.push(`${file.path}:${line}: ${name} outside runtime; take it from the Runtime`)
    }
  }
  for (const { specifier, names } of file.imports) {
    if (!specifier.startsWith('node:') || pureNodeModules.has(specifier)) continue
    const pure = pureNodeExports[specifier]
    const bad = pure ? names.filter(name => !pure.has(name)) : names
    if (bad.length === 0) continue
    findings.push(`${file.path}: ${bad.join(', ')} of ${specifier} is an effect; take it from the Runtime`)
  }
  return [...findings, ...moduleStateFindings(file)]
}

function moduleStateFindings({ path, code }) {
  const found = bannedModuleState.map(([pattern, name]) => [pattern.exec(code)?.index, name])
  for (const at of moduleCollections(code)) found.push([at, 'an empty collection'])
  return found.filter(([at]) => at !== undefined)
    .map(([at, name]) => `${path}:${lineAt(code, at)}: mutable state at module level (${name})`)
}

const emptyCollection = /\bnew (Map|Set|WeakMap|WeakSet|Array)(<[^\n]*>)?\(\s*\)/g
const staticField = /^\s+(?:(?:private|protected|public) )?static\b[^=\n]*=[^\n]*$/gm

/**
 * Where collections are made when the module is loaded and kept: in a constant, however deep in its object literals, or
 * in a static field.
 */
function moduleCollections(code) {
  const constants = code.matchAll(/^(export\s+)?const\b[^]*?(?=^[\w@]|(?![^]))/gm)
  return [...constants, ...code.matchAll(staticField)].flatMap(({ 0: statement, index }) => {
    const kept = [...statement.matchAll(emptyCollection)].filter(made => isKept(statement, made.index))
    return kept.map(made => index + made.index)
  })
}

/** Walks from a place in a statement out of its brackets: what a function makes, or is given, is not kept here. */
function isKept(statement, at) {
  let depth = 0
  let inLiteral = false
  let isFirstMember = true
  for (let i = at - 1; i >= 0; i--) {
    const c = statement[i]
    if (c === ')' || c === ']' || c === '}') depth++
    else if (c === '(' || c === '[' || c === '{') {
      if (depth-- > 0) continue
      depth = 0
      const isArgument = c === '(' && !inLiteral
      const isBody = c === '{' && /\)\s*(:[^=?]*)?$/.test(statement.slice(0, i))
      if (isArgument || isBody) return false
      inLiteral = true
      isFirstMember = true
    } else if (depth === 0) {
      if (c === ',') isFirstMember = false
      else if (c === '>' && statement[i - 1] === '=' && isFirstMember) return false
    }
  }
  return true
}

function linesMatching(code, pattern) {
  return code.split('\n').flatMap((line, index) => pattern.test(line) ? [index + 1] : [])
}
