import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'

/** By package and folder: the folders that it may import. */
type Tables = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>

interface Scanner {
  readonly blank: (text: string) => string
  readonly functions: (code: string) => { name: string, lines: number }[]
  readonly scan: (text: string) => { comments: string }
}

const scripts = new URL('../../../scripts/', import.meta.url)
const { tidy } = await import(new URL('tidy.mjs', scripts).href) as { tidy: (root: string) => string[] }
const { folders } = await import(new URL('tidy/folders.mjs', scripts).href) as { folders: Tables }
const { blank, functions, scan } = await import(new URL('tidy/scanner.mjs', scripts).href) as Scanner

describe('tidy', () => {
  let root: string
  beforeEach(() => { root = mkdtempSync(join(tmpdir(), 'sectional-tidy-')) })
  afterEach(() => rmSync(root, { recursive: true }))

  function write(files: Record<string, string>): void {
    const manifests = ['package.json', ...['core', 'shard', 'http'].map(name => `packages/${name}/package.json`)]
    const all = { ...Object.fromEntries(manifests.map(path => [path, '{}'])), ...files }
    for (const [path, text] of Object.entries(all)) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text)
    }
  }

  it('finds nothing in this checkout', () => {
    expect(tidy(new URL('../../..', import.meta.url).pathname)).to.deep.equal([])
  })

  it('refuses an import against the layers, types included', () => {
    write({ 'packages/http/src/a.ts': "import type { X } from '@sectional/shard'\n" })
    expect(tidy(root)).to.deep.equal([
      'packages/http/src/a.ts: package http may not import shard (docs/architecture.md)',
    ])
  })

  it('refuses an import against the direction of the folders, types included', () => {
    write({
      'packages/core/src/contracts/a.ts': "import type { B } from '../json/b.ts'\nexport type A = B\n",
      'packages/core/src/json/b.ts': 'export type B = 1\n',
      'packages/core/src/revisions/c.ts': "export * from '../contracts/a.ts'\nexport * from '../json/b.ts'\n",
    })
    expect(tidy(root)).to.deep.equal([
      'packages/core/src/contracts/a.ts: contracts may not import json (scripts/tidy/folders.mjs)',
    ])
  })

  it('refuses a folder that the table does not know, and imports of an index', () => {
    write({
      'packages/core/src/index.ts': "export * from './json/a.ts'\nexport * from './new/b.ts'\n",
      'packages/core/src/json/a.ts': 'export const a = 1\n',
      'packages/core/src/new/b.ts': 'export const b = 1\n',
    })
    expect(tidy(root)).to.deep.equal([
      'packages/core/src/new/b.ts: new is not in the table of scripts/tidy/folders.mjs',
    ])
    write({ 'packages/core/src/new/b.ts': '', 'packages/core/src/json/c.ts': "import { a } from '../index.ts'\n" })
    expect(tidy(root)).to.include('packages/core/src/json/c.ts: imports the index of its package')
  })

  it('refuses imports between routes', () => {
    write({
      'packages/http/src/routes/a.ts': 'export const a = 1\n',
      'packages/http/src/routes/b.ts': "import { a } from './a.ts'\nexport const b = a\n",
      'packages/http/src/documents/c.ts': 'export const c = 1\n',
      'packages/http/src/documents/d.ts': "import { c } from './c.ts'\nexport const d = c\n",
    })
    expect(tidy(root)).to.deep.equal([
      'packages/http/src/routes/b.ts: imports a.ts of the same folder; move what both need below them',
    ])
  })

  it('knows folders in one direction only', () => {
    for (const [name, table] of Object.entries(folders)) {
      const below = (folder: string, seen: readonly string[]): void => {
        expect(seen, `${name}: ${[...seen, folder].join(' -> ')}`).not.to.include(folder)
        for (const next of table[folder]!) below(next, [...seen, folder])
      }
      for (const folder of Object.keys(table)) below(folder, [])
    }
  })

  it('refuses a path into another package and an undeclared dependency', () => {
    write({ 'packages/shard/src/a.ts': "import '../../core/src/index.ts'\nexport { x } from 'left-pad'\n" })
    expect(tidy(root)).to.have.length(2)
  })

  it('finds an import cycle through a type import and across packages', () => {
    write({
      'packages/core/src/a.ts': "import type { B } from './b.ts'\nexport type A = B\n",
      'packages/core/src/b.ts': "export type { A } from './a.ts'\n",
    })
    expect(tidy(root)).to.deep.equal(['import cycle: packages/core/src/a.ts -> packages/core/src/b.ts'])
  })

  it('refuses effects outside runtime, but not their names in comments and strings', () => {
    write({
      'packages/core/src/a.ts': [
        '// Date.now()',
        "const text = 'setTimeout(f)'",
        'export const f = () => `Math.random() ${Date.now()} process.env`',
        "import { readFileSync } from 'node:fs'",
        "import { createHash, randomBytes } from 'node:crypto'\n",
      ].join('\n'),
    })
    expect(tidy(root)).to.deep.equal([
      'packages/core/src/a.ts:3: Date outside runtime; take it from the Runtime',
      'packages/core/src/a.ts: readFileSync of node:fs is an effect; take it from the Runtime',
      'packages/core/src/a.ts: randomBytes of node:crypto is an effect; take it from the Runtime',
    ])
  })

  it('refuses mutable state at module level', () => {
    const constant = 'export const table: ReadonlyMap<string, number> = new Map([])\n'
    write({ 'packages/core/src/a.ts': `${constant}const cache = new Map<string, number>()\n` })
    expect(tidy(root)).to.deep.equal(['packages/core/src/a.ts:2: mutable state at module level (an empty collection)'])
  })

  it('refuses effects by way of globalThis', () => {
    const calls = ["await globalThis.fetch('x')", "globalThis['setTimeout'](f)", 'const { fetch } = globalThis']
    const lines = [...calls, 'const globalThisToo = { f: 1 }']
    write({ 'packages/core/src/a.ts': `export async function g() {\n${lines.join('\n')}\n}\n` })
    expect(tidy(root)).to.deep.equal([2, 3, 4].map(line => (
      `packages/core/src/a.ts:${line}: globalThis outside runtime; take it from the Runtime`
    )))
  })

  it('refuses collections inside literals and static fields of a module, but not those that functions make', () => {
    const kept = [
      'export const a = { cache: new Map() }',
      'const b = Object.freeze({\n  deep: [{ set: new Set<string>() }],\n})',
      'class C {\n  static readonly known = new Map<string, number>()\n}',
      'const d = { names: (n: string) => n, list: new Array() }',
    ]
    for (const code of kept) {
      write({ 'packages/core/src/a.ts': `${code}\n` })
      expect(tidy(root), code).to.have.length(1)
      expect(tidy(root)[0], code).to.contain('mutable state at module level (an empty collection)')
    }
    write({
      'packages/core/src/a.ts': [
        'export const a = { b: () => new Map(), c: (x: number) => ({ x, set: new Set() }) }',
        'export const e = { d(): object { return new Map() } }',
        'const b = async () => { const seen = new Set(); return seen }',
        'class C {\n  readonly #known = new Map<string, number>()\n  static empty(): object { return new Map() }\n}',
        'const c = new Query(new Map())',
        'function d() {\n  return { cache: new Map() }\n}',
      ].join('\n') + '\n',
    })
    expect(tidy(root)).to.deep.equal([])
  })

  it('refuses files that are named after nothing', () => {
    write({ 'packages/core/src/utils.ts': 'export {}\n' })
    expect(tidy(root)).to.deep.equal(['packages/core/src/utils.ts: name the file after its concept'])
  })

  it('refuses private members without # and constants in capitals', () => {
    const members = '  private constructor() {}\n  readonly #b = 1\n  private readonly c = 2\n'
    write({ 'packages/core/src/a.ts': `export const LIMIT_MAX = 1\nconst limitMax = 2\nclass A {\n${members}}\n` })
    expect(tidy(root)).to.deep.equal([
      'packages/core/src/a.ts:6: hide the member by a name with #',
      'packages/core/src/a.ts:1: name the constant in camelCase',
    ])
  })

  it('refuses files, functions and lines that are too long', () => {
    const long = (lines: number): string => `export function long(): { a: number } {\n${'  f()\n'.repeat(lines - 2)}}\n`
    const fits = `${long(70)}${'\n'.repeat(529)}// ${'x'.repeat(117)}\n`
    write({ 'packages/core/src/a.ts': fits })
    expect(tidy(root)).to.deep.equal([])
    write({ 'packages/core/src/a.ts': `${fits}\n` })
    expect(tidy(root)).to.deep.equal([
      'packages/core/src/a.ts: 601 lines, the limit is 600; find the better cut',
    ])
    write({ 'packages/core/src/a.ts': fits, 'deploy/a.mjs': `// ${'x'.repeat(118)}\n` })
    expect(tidy(root)).to.deep.equal(['deploy/a.mjs:1: 121 columns, the limit is 120; break the line'])
    write({ 'packages/core/src/a.ts': `${long(71)}// ${'x'.repeat(118)}\n`, 'deploy/a.mjs': '' })
    expect(tidy(root)).to.deep.equal([
      'packages/core/src/a.ts#long: 71 lines, the limit is 70; find the better cut',
      'packages/core/src/a.ts:72: 121 columns, the limit is 120; break the line',
    ])
  })

  it('refuses citations of documents that are not part of the project', () => {
    write({
      'packages/core/src/a.ts': '/** As api.md A1 says. */\n',
      'packages/core/DESIGN.md': 'See DESIGN.md and design.md.\n',
    })
    expect(tidy(root)).to.deep.equal([
      'packages/core/src/a.ts: cites api.md, which does not exist',
      'packages/core/DESIGN.md: cites design.md, which does not exist',
    ])
  })

  it('refuses citations of folders beside the checkout', () => {
    write({
      'packages/core/src/a.ts': '/** As ../shared/rules says. */\nexport const origin = "../../../shared/rules"\n',
      'docs/b.md': 'Copy ../shared/rules/ or ../../elsewhere.\n',
      'packages/core/DESIGN.md': '`shared/rules` has them.\n',
    })
    expect(tidy(root)).to.deep.equal([
      'packages/core/src/a.ts: cites ../shared/rules, which does not exist',
      'docs/b.md: cites ../shared/rules/, which does not exist',
      'docs/b.md: cites ../../elsewhere, which does not exist',
      'packages/core/DESIGN.md: cites shared/rules, which does not exist',
    ])
  })

  it('finds cited paths that do not exist, in comments and pages', () => {
    write({
      'packages/core/src/json/a.ts': [
        '// packages/core/src/json/a.ts, core/json/a.ts, json/a.ts, a.ts, packages/*/src/json, docs/b.md and docs/.',
        '/* packages/core/src/gone.ts, docs/gone.md. */',
        "export const notCited = 'docs/elsewhere.md'",
        '// https://example.org/docs/elsewhere.md and host.org/doc/elsewhere.md, packages/core/dist/a.ts',
        '// gone.ts, json/b.ts',
      ].join('\n') + '\n',
      'docs/b.md': '[here](../packages/core), [there](gone), [out](https://example.org), packages/core/src/gone/\n',
      'packages/core/DESIGN.md': '`json/a`, `json/`, `core/json/a`, `text/plain`, `json/gone`, `gone/`\n',
    })
    expect(tidy(root)).to.deep.equal([
      'packages/core/src/json/a.ts: cites packages/core/src/gone.ts, which does not exist',
      'packages/core/src/json/a.ts: cites docs/gone.md, which does not exist',
      'packages/core/src/json/a.ts: cites gone.ts, which does not exist',
      'packages/core/src/json/a.ts: cites json/b.ts, which does not exist',
      'docs/b.md: cites packages/core/src/gone/, which does not exist',
      'docs/b.md: links to gone, which does not exist',
      'packages/core/DESIGN.md: cites json/gone, which does not exist',
      'packages/core/DESIGN.md: cites gone/, which does not exist',
    ])
  })

  it('finds cited headings that do not exist', () => {
    write({
      'docs/b.md': [
        '# `PUT /{db}`: make', '## Same', '## Same', '```', '# no heading', '```',
        '[1](#put-db-make) [2](#same-1) [3](#same-2) [4](#no-heading)\n',
      ].join('\n'),
      'packages/core/src/a.ts': '// docs/b.md#same and docs/b.md#gone\n',
    })
    expect(tidy(root)).to.deep.equal([
      'packages/core/src/a.ts: cites the heading docs/b.md#gone, which does not exist',
      'docs/b.md: links to the heading #same-2, which does not exist',
      'docs/b.md: links to the heading #no-heading, which does not exist',
    ])
  })
})

describe('tidy scanner', () => {
  it('keeps lines and blanks strings, templates, comments and regular expressions', () => {
    expect(blank("a('x{') // {\nb(/[/{]/g) / 2").trimEnd()).to.equal("a('  ')     \nb(       ) / 2")
    expect(blank('`a{${f({ b: `c}` })}d}` + {}')).to.equal('`    f({ b: `  ` })   ` + {}')
  })

  it('gives comments alone, on their lines', () => {
    const { comments } = scan("f('// no') // a\n/* b\nc */ g(`/* ${d /* e */} */`)")
    const lines = comments.split('\n').map(line => line.trim().replace(/ {2,}/, ' '))
    expect(lines).to.deep.equal(['// a', '/* b', 'c */ /* e */'])
  })

  it('measures functions, methods and arrows with block bodies only', () => {
    const code = [
      'class A {', '  m(a: { b: string }): Promise<{ c: 1 }> {', '    if (a) {', '    }', '  }', '}',
      'const f = async (x: number) => {', '}', 'for (const y of z) {', '}', 'list.map(y => {', '})\n',
    ].join('\n')
    expect(functions(code).map(found => `${found.name} ${found.lines}`)).to.deep.equal(['m 4', 'f 2', 'anonymous 2'])
  })
})
