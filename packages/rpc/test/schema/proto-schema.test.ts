import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { embedSchema } from '../../proto/embed.ts'

describe('the embedded schema', () => {
  it('equals the text that proto/embed.ts makes from the .proto files', () => {
    const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')
    assert.equal(read('../../src/schema/schema-text.ts'), embedSchema(file => read(`../../proto/${file}`)))
  })
})
