// What the rules read: the source files of a checkout with their imports, and its pages of Markdown.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { scan } from './scanner.mjs'

const sourceFolders = ['packages', 'test-cluster', 'bench', 'fuzz', 'mutation', 'scripts', 'deploy']
/** Folders that are not part of the project: made by tools, or data of nodes that were started here. */
const foreign = /(^|\/)(node_modules|dist|\.git)$|^(\.runtime|\.mutants|data[^/]*)$/

/** Paths of all files of a checkout, sorted, relative to its top folder. */
export function projectFiles(root) {
  const found = []
  const walk = folder => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (!entry.isDirectory()) found.push(path)
      else if (!foreign.test(path)) walk(path)
    }
  }
  walk('')
  return found.sort()
}

export function isSourcePath(path) {
  return sourceFolders.includes(path.split('/')[0]) && /\.(ts|mjs)$/.test(path) && !path.endsWith('.d.ts')
}

export function readSource(root, path) {
  const text = readFileSync(join(root, path), 'utf8')
  const [, packageName, part] = /^packages\/([^/]+)\/([^/]+)\//.exec(path) ?? []
  const { code, comments } = scan(text)
  // A contract's conformance suite lies beside the contract and is a test all the same.
  const isSource = part === 'src' && !/-suite(\.ts|\/)/.test(path)
  return { path, text, code, comments, packageName, part, isSource, imports: importsOf(text, code) }
}

/** Specifiers with the imported names (`*`: a namespace or a side effect), where the blanked code shows an import. */
function importsOf(text, code) {
  const found = []
  const statement = /(?<![.#\w])(import|export)\b([^;'"()=]*?\bfrom)?\s*(?=['"])/g
  for (const match of code.matchAll(statement)) {
    const at = match.index + match[0].length
    const specifier = /^(['"])(.*?)\1/.exec(text.slice(at))?.[2]
    if (specifier === undefined || (match[1] === 'export' && !match[2])) continue
    const names = /\{([^}]*)\}/.exec(match[2] ?? '')?.[1]
    const parts = names?.split(',').map(name => name.trim().replace(/^type /, '').split(/\s+as\s+/)[0])
    found.push({ specifier, names: parts?.filter(Boolean) ?? ['*'] })
  }
  for (const match of code.matchAll(/(?<![.#\w])import\s*\(\s*(?=['"])/g)) {
    const specifier = /^(['"])(.*?)\1/.exec(text.slice(match.index + match[0].length))?.[2]
    if (specifier !== undefined) found.push({ specifier, names: ['*'] })
  }
  return found
}

/** The file that an import means, relative to the top folder; undefined: none of this checkout. */
export function resolveImport(root, file, specifier) {
  if (specifier.startsWith('.')) return relative(root, join(root, dirname(file.path), specifier))
  return specifier.startsWith('@sectional/') ? exportedFile(root, specifier) : undefined
}

/** The source file that a package exports under the specifier, or undefined. */
export function exportedFile(root, specifier) {
  const [, name, ...rest] = specifier.split('/')
  const manifest = join(root, 'packages', name, 'package.json')
  if (!existsSync(manifest)) return undefined
  const exported = JSON.parse(readFileSync(manifest, 'utf8')).exports?.[['.', ...rest].join('/')]
  return exported && `packages/${name}/${exported['sectional-source'].replace('./', '')}`
}

export function lineAt(text, index) {
  return text.slice(0, index).split('\n').length
}
