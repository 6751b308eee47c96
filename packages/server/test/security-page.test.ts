import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'
import { expect } from 'chai'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const page = readFileSync(join(root, 'docs/security.md'), 'utf8')
/** Rows of the tables whose last column names tests, without their heads. */
const rows = page.split(/^## /m).filter(section => /\| Test \|$/m.test(section))
  .flatMap(section => section.split('\n').filter(line => line.startsWith('| ')).slice(1))

describe('the threat model', () => {
  it('names a test for each of its lines', () => {
    const without = rows.filter(row => !/\| (?:`[^`]+` "[^"]+"(?:; )?)+ \|$/.test(row))
    expect(rows.length).to.be.above(40)
    expect(without).to.deep.equal([])
  })

  it('names tests that exist', () => {
    const missing = rows.flatMap(row => [...row.matchAll(/`([^` ]+\/[^` ]+\.ts)` "([^"]+)"/g)])
      .filter(([, path, title]) => !declares(path!, title!)).map(([text]) => text)
    expect(missing).to.deep.equal([])
  })
})

/** Returns whether a file has a test, or a target of the fuzzer, whose title contains the text. */
function declares(path: string, title: string): boolean {
  if (!existsSync(join(root, path))) return false
  return readFileSync(join(root, path), 'utf8').split('\n').some(line =>
    line.includes(title) && /\b(?:it|describe)\(|property: |httpTarget\(/.test(line))
}
