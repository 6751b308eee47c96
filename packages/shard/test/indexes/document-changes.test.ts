import assert from 'node:assert/strict'
import { MemoryStorage, RealClock, Turns } from '@sectional/runtime'
import { documentChanges } from '../../src/indexes/document-changes.ts'
import { IndexKeys, placeText } from '../../src/indexes/index-keys.ts'
import { encodeDocumentRows, encodeRow } from '../../src/indexes/index-records.ts'

describe('the changes of documents in an index', () => {
  it('are found for only as many documents at once as fit into memory with their rows in the store', async () => {
    const store = await new MemoryStorage().open('index')
    const keys = new IndexKeys(1)
    const value = Buffer.alloc(3 * 1024 * 1024, 'x')
    const ids = ['a', 'b', 'c']
    await store.write(batch => {
      for (const id of ids) {
        const place = placeText({ key: 'k', id, number: 0 })
        batch.put(keys.row(place), encodeRow(place, value))
        const rows = [{ key: 'k', valueBytes: value.length }]
        batch.put(keys.document(id), encodeDocumentRows({ failed: false, rows }))
      }
    })
    const changed = ids.map(id => ({ id, result: { rows: [] } }))
    const changes = await documentChanges(store, keys, changed, false, new Turns(new RealClock()))
    assert.deepEqual(changes.map(({ id, rows }) => [id, rows.length]), [['a', 1]])
  })
})
