import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { embedSchema } from '../../proto/embed.ts'
import { messageHeaderType } from '../../src/schema/schema.ts'

describe('the embedded schema', () => {
  it('equals the text that proto/embed.ts makes from the .proto files', () => {
    const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')
    assert.equal(read('../../src/schema/schema-text.ts'), embedSchema(file => read(`../../proto/${file}`)))
  })
})

describe('a decoded oneof', () => {
  it('has its last member only, and none when the message has none', () => {
    const { decode, encode } = messageHeaderType
    const call = encode({ id: 1, call: { timeoutMs: 5000, openDocument: {} } })
    const cancel = encode({ id: 1, cancel: {} })
    const { call: kept, content } = decode(call)
    assert.deepEqual([content, kept.verb, kept.scanChanges], ['call', 'openDocument', null])
    for (const parts of [[call, cancel], [call, cancel, cancel], [cancel, call, cancel]]) {
      const message = decode(Buffer.concat(parts))
      assert.deepEqual([message['content'], message['call'], message['cancel'] === null], ['cancel', null, false])
    }
    assert.equal(decode(encode({ id: 1 }))['content'], undefined)
  })
})
