// Holds the house rules that a compiler does not: layers, import cycles, effects outside `runtime`, names, sizes.
//   node scripts/tidy.mjs           prints the findings, exit status 1 when there are any
//   node scripts/tidy.mjs --shrink  lowers the entries of tidy-exceptions.json to what is true now
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { blank, functions } from './tidy-scanner.mjs'

/** design.md section 3: what each package may import of the others. */
export const layers = {
  core: [],
  runtime: ['core'],
  shard: ['core', 'runtime'],
  rpc: ['core', 'runtime'],
  cluster: ['core', 'runtime'],
  http: ['core', 'runtime', 'cluster'],
  replicator: ['core', 'runtime', 'cluster'],
  server: ['core', 'runtime', 'shard', 'rpc', 'cluster', 'http', 'replicator'],
  simulator: ['core', 'runtime', 'server'],
}

/** Node's modules without effects; of the others only the named exports. */
const pureNodeModules = new Set(['node:buffer', 'node:util', 'node:assert', 'node:assert/strict', 'node:path', 'node:path/posix', 'node:string_decoder', 'node:url'])
const pureNodeExports = {
  'node:crypto': new Set(['createHash', 'createHmac', 'timingSafeEqual', 'hash']),
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
]

const bannedModuleState = [
  [/^(export\s+)?(let|var)\s/m, 'let'],
  [/^(export\s+)?const\s+\w+[^=\n]*=\s*new (Map|Set|WeakMap|WeakSet|Array)(<[^\n]*>)?\(\s*\)/m, 'an empty collection'],
  [/^(export\s+)?const\s+\w+[^=\n]*=\s*(\[\s*\]|\{\s*\})\s*$/m, 'an empty collection'],
]

const bannedFileNames = /^(utils?|helpers?|common|types|misc|shared)(\.test)?\.(ts|mjs)$/
const limits = { fileLines: 600, functionLines: 70 }

/**
 * @param {string} root top folder of the checkout
 * @returns {string[]} one line per finding
 */
export function tidy(root) {
  const files = sourceFiles(root).map(path => readSource(root, path))
  return [
    ...files.flatMap(file => [...layerFindings(root, file), ...effectFindings(file), ...nameFindings(file)]),
    ...cycleFindings(root, files),
    ...sizeFindings(root, files),
  ]
}

function sourceFiles(root) {
  const folders = ['packages', 'test-cluster', 'bench', 'scripts']
  return folders.filter(folder => existsSync(join(root, folder))).flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(name => /\.(ts|mjs)$/.test(name) && !name.endsWith('.d.ts') && !/(^|\/)(node_modules|dist)\//.test(name))
      .map(name => `${folder}/${name}`)).sort()
}

function readSource(root, path) {
  const text = readFileSync(join(root, path), 'utf8')
  const [, packageName, part] = /^packages\/([^/]+)\/([^/]+)\//.exec(path) ?? []
  const code = blank(text)
  // A contract's conformance suite lies beside the contract and is a test all the same.
  const isSource = part === 'src' && !/-suite(\.ts|\/)/.test(path)
  return { path, text, code, packageName, isSource, imports: importsOf(text, code) }
}

/** Specifiers with the imported names (`*` for a namespace or a side effect), found where the blanked code shows an import. */
function importsOf(text, code) {
  const found = []
  const statement = /(?<![.#\w])(import|export)\b([^;'"()=]*?\bfrom)?\s*(?=['"])/g
  for (const match of code.matchAll(statement)) {
    const at = match.index + match[0].length
    const specifier = /^(['"])(.*?)\1/.exec(text.slice(at))?.[2]
    if (specifier === undefined || (match[1] === 'export' && !match[2])) continue
    const names = /\{([^}]*)\}/.exec(match[2] ?? '')?.[1]
    found.push({ specifier, names: names ? names.split(',').map(name => name.trim().replace(/^type /, '').split(/\s+as\s+/)[0]).filter(Boolean) : ['*'] })
  }
  for (const match of code.matchAll(/(?<![.#\w])import\s*\(\s*(?=['"])/g)) {
    const specifier = /^(['"])(.*?)\1/.exec(text.slice(match.index + match[0].length))?.[2]
    if (specifier !== undefined) found.push({ specifier, names: ['*'] })
  }
  return found
}

function layerFindings(root, file) {
  if (!file.packageName) {
    // test-cluster knows nodes by HTTP only, and plays the simulator's scenarios; bench measures parts too, scripts stand outside.
    if (!file.path.startsWith('test-cluster/')) return []
    return file.imports.filter(({ specifier }) => specifier.startsWith('@sectional/') && specifier !== '@sectional/simulator/scenarios')
      .map(({ specifier }) => `${file.path}: imports ${specifier}; it may only speak to nodes by HTTP`)
  }
  const allowed = layers[file.packageName]
  if (!allowed) return [`${file.path}: package ${file.packageName} is not in the layer table of scripts/tidy.mjs`]
  const findings = []
  const declared = dependenciesOf(root, file)
  for (const { specifier } of file.imports) {
    if (specifier.startsWith('.')) {
      const target = relative(root, join(root, dirname(file.path), specifier))
      if (!target.startsWith(`packages/${file.packageName}/`) && !(target.startsWith('scripts/') && !file.isSource)) findings.push(`${file.path}: ${specifier} leaves the package; import it by its package name`)
    } else if (specifier.startsWith('@sectional/')) {
      const [, target, ...rest] = specifier.split('/')
      if (target !== file.packageName && !allowed.includes(target)) findings.push(`${file.path}: package ${file.packageName} may not import ${target} (layers: design.md section 3)`)
      if (rest.length > 0 && exportedFile(root, specifier) === undefined) findings.push(`${file.path}: ${specifier} reaches behind the package's index`)
    } else if (!specifier.startsWith('node:') && !declared.has(packageNameOf(specifier))) {
      findings.push(`${file.path}: ${packageNameOf(specifier)} is not a dependency of the package`)
    }
  }
  return findings
}

function packageNameOf(specifier) {
  return specifier.split('/').slice(0, specifier.startsWith('@') ? 2 : 1).join('/')
}

function dependenciesOf(root, file) {
  const manifest = JSON.parse(readFileSync(join(root, 'packages', file.packageName, 'package.json'), 'utf8'))
  const names = Object.keys(manifest.dependencies ?? {})
  if (!file.isSource) names.push(...Object.keys(manifest.devDependencies ?? {}), ...Object.keys(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).devDependencies ?? {}))
  return new Set(names)
}

/** Where effects are at home: the runtime package and the command line. */
function mayHaveEffects(file) {
  return !file.isSource || file.packageName === 'runtime' || file.path === 'packages/server/src/cli.ts' || /^packages\/(server|simulator)\/src\/command-line\//.test(file.path)
}

function effectFindings(file) {
  if (mayHaveEffects(file)) return []
  const findings = []
  for (const [pattern, name] of bannedEffects) {
    for (const line of linesMatching(file.code, pattern)) findings.push(`${file.path}:${line}: ${name} outside runtime; take it from the Runtime`)
  }
  for (const { specifier, names } of file.imports) {
    if (!specifier.startsWith('node:') || pureNodeModules.has(specifier)) continue
    const pure = pureNodeExports[specifier]
    const bad = pure ? names.filter(name => !pure.has(name)) : names
    if (bad.length > 0) findings.push(`${file.path}: ${bad.join(', ')} of ${specifier} is an effect; take it from the Runtime`)
  }
  for (const [pattern, name] of bannedModuleState) {
    const match = pattern.exec(file.code)
    if (match) findings.push(`${file.path}:${lineAt(file.code, match.index)}: mutable state at module level (${name})`)
  }
  return findings
}

function linesMatching(code, pattern) {
  return code.split('\n').flatMap((line, index) => pattern.test(line) ? [index + 1] : [])
}

function lineAt(text, index) {
  return text.slice(0, index).split('\n').length
}

function nameFindings(file) {
  const name = file.path.split('/').at(-1)
  return bannedFileNames.test(name) ? [`${file.path}: name the file after its concept`] : []
}

/** Strongly connected components of the file graph, types included (Tarjan 1972). */
function cycleFindings(root, files) {
  const known = new Map(files.map(file => [file.path, file]))
  const targets = file => file.imports.map(({ specifier }) => resolveImport(root, file, specifier)).filter(path => path !== undefined && known.has(path))
  const indexes = new Map()
  const low = new Map()
  const stack = []
  const findings = []
  const visit = file => {
    indexes.set(file.path, indexes.size)
    low.set(file.path, indexes.get(file.path))
    stack.push(file.path)
    for (const path of targets(file)) {
      if (!indexes.has(path)) visit(known.get(path))
      if (stack.includes(path)) low.set(file.path, Math.min(low.get(file.path), low.get(path)))
    }
    if (low.get(file.path) !== indexes.get(file.path)) return
    const component = stack.splice(stack.indexOf(file.path))
    if (component.length > 1 || targets(file).includes(file.path)) findings.push(`import cycle: ${component.join(' -> ')}`)
  }
  for (const file of files) if (!indexes.has(file.path)) visit(file)
  return findings
}

function resolveImport(root, file, specifier) {
  if (specifier.startsWith('.')) return relative(root, join(root, dirname(file.path), specifier))
  return specifier.startsWith('@sectional/') ? exportedFile(root, specifier) : undefined
}

/** The source file that a package exports under the specifier, or undefined. */
function exportedFile(root, specifier) {
  const [, name, ...rest] = specifier.split('/')
  const manifest = join(root, 'packages', name, 'package.json')
  const exported = existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).exports?.[['.', ...rest].join('/')] : undefined
  return exported && `packages/${name}/${exported['sectional-source'].replace('./', '')}`
}

const exceptionsFile = 'scripts/tidy-exceptions.json'

function readExceptions(root) {
  const path = join(root, exceptionsFile)
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : { files: {}, functions: {} }
}

/** Everything over a limit as [kind, name, lines]. */
function oversized(files) {
  return files.flatMap(file => {
    const lines = file.text.split('\n').length - 1
    const long = file.isSource ? functions(file.code).filter(found => found.lines > limits.functionLines) : []
    return [
      ...(lines > limits.fileLines ? [['files', file.path, lines]] : []),
      ...long.map(found => ['functions', `${file.path}#${found.name}`, found.lines]),
    ]
  })
}

/** A ratchet: nothing new may pass a limit, and what is listed as an exception may only shrink. */
function sizeFindings(root, files) {
  const exceptions = readExceptions(root)
  const over = oversized(files)
  const findings = []
  for (const [kind, name, lines] of over) {
    const listed = exceptions[kind][name]
    const limit = kind === 'files' ? limits.fileLines : limits.functionLines
    if (listed === undefined) findings.push(`${name}: ${lines} lines, the limit is ${limit}; find the better cut`)
    else if (lines > listed) findings.push(`${name}: grew from ${listed} to ${lines} lines; exceptions may only shrink`)
    else if (lines < listed) findings.push(`${name}: shrank from ${listed} to ${lines} lines; run node scripts/tidy.mjs --shrink`)
  }
  for (const kind of ['files', 'functions']) {
    for (const name of Object.keys(exceptions[kind])) {
      if (!over.some(entry => entry[0] === kind && entry[1] === name)) findings.push(`${name}: no exception any more; run node scripts/tidy.mjs --shrink`)
    }
  }
  return findings
}

function shrinkExceptions(root) {
  const exceptions = readExceptions(root)
  const over = oversized(sourceFiles(root).map(path => readSource(root, path)))
  const next = { files: {}, functions: {} }
  for (const [kind, name, lines] of over) {
    if (exceptions[kind][name] !== undefined) next[kind][name] = Math.min(exceptions[kind][name], lines)
  }
  writeFileSync(join(root, exceptionsFile), JSON.stringify(next, null, 2) + '\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL('..', import.meta.url))
  if (process.argv.includes('--shrink')) shrinkExceptions(root)
  const findings = tidy(root)
  for (const finding of findings) console.log(finding)
  process.exitCode = findings.length > 0 ? 1 : 0
}
