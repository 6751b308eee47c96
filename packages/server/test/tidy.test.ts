import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'

const scripts = new URL('../../../scripts/', import.meta.url)
const { tidy } = await import(new URL('tidy.mjs', scripts).href) as { tidy: (root: string) => string[] }
const { blank, functions } = await import(new URL('tidy-scanner.mjs', scripts).href) as {
  blank: (text: string) => string
  functions: (code: string) => { name: string, lines: number }[]
}

describe('tidy', () => {
  let root: string
  beforeEach(() => { root = mkdtempSync(join(tmpdir(), 'sectional-tidy-')) })
  afterEach(() => rmSync(root, { recursive: true }))

  function write(files: Record<string, string>): void {
    const manifests = { 'package.json': '{}', 'packages/core/package.json': '{}', 'packages/shard/package.json': '{}', 'packages/http/package.json': '{}' }
    for (const [path, text] of Object.entries({ ...manifests, ...files })) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text)
    }
  }

  it('finds nothing in this checkout', () => {
    expect(tidy(new URL('../../..', import.meta.url).pathname)).to.deep.equal([])
  })

  it('refuses an import against the layers, types included', () => {
    write({ 'packages/http/src/a.ts': "import type { X } from '@sectional/shard'\n" })
    expect(tidy(root)).to.deep.equal(['packages/http/src/a.ts: package http may not import shard (layers: design.md section 3)'])
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
    write({ 'packages/core/src/a.ts': "// Date.now()\nconst text = 'setTimeout(f)'\nexport const f = () => `Math.random() ${Date.now()} process.env`\nimport { readFileSync } from 'node:fs'\nimport { createHash, randomBytes } from 'node:crypto'\n" })
    expect(tidy(root)).to.deep.equal([
      'packages/core/src/a.ts:3: Date outside runtime; take it from the Runtime',
      'packages/core/src/a.ts: readFileSync of node:fs is an effect; take it from the Runtime',
      'packages/core/src/a.ts: randomBytes of node:crypto is an effect; take it from the Runtime',
    ])
  })

  it('refuses mutable state at module level', () => {
    write({ 'packages/core/src/a.ts': 'export const table: ReadonlyMap<string, number> = new Map([])\nconst cache = new Map<string, number>()\n' })
    expect(tidy(root)).to.deep.equal(['packages/core/src/a.ts:2: mutable state at module level (an empty collection)'])
  })

  it('refuses files that are named after nothing', () => {
    write({ 'packages/core/src/utils.ts': 'export {}\n' })
    expect(tidy(root)).to.deep.equal(['packages/core/src/utils.ts: name the file after its concept'])
  })

  it('lets exceptions to the size limits only shrink', () => {
    const lines = (count: number) => `export function long(): { a: number } {\n${'  f()\n'.repeat(count - 2)}}\n`
    const exceptions = (count: number) => JSON.stringify({ files: {}, functions: { 'packages/core/src/a.ts#long': count } })
    write({ 'packages/core/src/a.ts': lines(80) })
    expect(tidy(root)[0]).to.contain('80 lines, the limit is 70')
    write({ 'packages/core/src/a.ts': lines(80), 'scripts/tidy-exceptions.json': exceptions(80) })
    expect(tidy(root)).to.deep.equal([])
    write({ 'packages/core/src/a.ts': lines(81), 'scripts/tidy-exceptions.json': exceptions(80) })
    expect(tidy(root)[0]).to.contain('grew from 80 to 81')
    write({ 'packages/core/src/a.ts': lines(75), 'scripts/tidy-exceptions.json': exceptions(80) })
    expect(tidy(root)[0]).to.contain('shrank from 80 to 75')
  })
})

describe('tidy scanner', () => {
  it('keeps lines and blanks strings, templates, comments and regular expressions', () => {
    expect(blank("a('x{') // {\nb(/[/{]/g) / 2").trimEnd()).to.equal("a('  ')     \nb(       ) / 2")
    expect(blank('`a{${f({ b: `c}` })}d}` + {}')).to.equal('`    f({ b: `  ` })   ` + {}')
  })

  it('measures functions, methods and arrows with block bodies only', () => {
    const code = 'class A {\n  m(a: { b: string }): Promise<{ c: 1 }> {\n    if (a) {\n    }\n  }\n}\nconst f = async (x: number) => {\n}\nfor (const y of z) {\n}\nlist.map(y => {\n})\n'
    expect(functions(code).map(found => `${found.name} ${found.lines}`)).to.deep.equal(['m 4', 'f 2', 'anonymous 2'])
  })
})
