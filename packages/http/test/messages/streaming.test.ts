import { ApiError, ReplicaError } from '@sectional/core'
import { expect } from 'chai'
import type { CoordinatorNode } from '@sectional/cluster'
import { ClientGoneError } from '@sectional/runtime'
import { adminAuthorization, MemoryNode } from '../memory-node.ts'

const rows = 200_000
const pageRows = 500

/** A database of many rows, which are created only while they are listed. It counts the rows that were read. */
class EndlessRows {
  produced = 0
  closed = 0

  readonly wrap = (coordinator: CoordinatorNode): CoordinatorNode => ({
    ...coordinator,
    listDocuments: async () => ({ total: rows, offset: 0, rows: this.#documents() }),
    openChanges: async () => this.#changes(),
  } as unknown as CoordinatorNode)

  async * #documents() {
    try {
      for (; this.produced < rows; this.produced += pageRows) {
        yield Array.from(
          { length: pageRows }, (_, i) => ({ id: `document-${this.produced + i}`, revision: `1-${'0'.repeat(32)}` }),
        )
      }
    } finally {
      this.closed++
    }
  }

  #changes() {
    return {
      next: async () => {
        if (this.produced >= rows) return null
        const page = Array.from({ length: pageRows }, (_, i) => ({
          sequence: this.produced + i, id: `document-${this.produced + i}`,
          leaves: [{ revision: `1-${'0'.repeat(32)}`, deleted: false }],
        }))
        this.produced += pageRows
        return { kind: 'rows' as const, place: 0, rows: page }
      },
      take: () => {}, token: () => '1-A', pending: async () => 0, end: () => {}, close: async () => { this.closed++ },
    }
  }
}

for (const path of ['/db/_all_docs', '/db/_changes', '/db/_changes?feed=continuous&limit=200000']) {
  describe(`a slow reader of ${path}`, () => {
    it('holds the server back, and gets every row in the end', async () => {
      const source = new EndlessRows()
      const node = new MemoryNode({ wrap: source.wrap })
      await node.put('/db?q=2')
      await node.get('/db')
      const chunks = (await open(node, path)).chunks[Symbol.asyncIterator]()
      let lines = 0
      const readSome = async (bytes: number): Promise<boolean> => {
        for (let left = bytes; left > 0;) {
          const next = await chunks.next()
          if (next.done) return false
          left -= next.value.length
          for (const byte of next.value) if (byte === 0x0a) lines++
        }
        return true
      }
      await readSome(300_000)
      const before = source.produced
      for (let turn = 0; turn < 50; turn++) await new Promise<void>(resolve => { setImmediate(resolve) })
      // Rows in transit: in the buffer of the connection, in the buffer of the response, and one page.
      expect(source.produced - before).to.be.below(5000)
      expect(source.produced).to.be.below(15_000)
      while (await readSome(1_000_000));
      expect(lines).to.be.within(rows, rows + 5)
      expect(source.closed).to.equal(1)
      await node.stop()
    })

    it('stops the reading when it goes away', async () => {
      const source = new EndlessRows()
      const node = new MemoryNode({ wrap: source.wrap })
      await node.put('/db?q=2')
      for await (const chunk of (await open(node, path)).chunks) if (chunk.length > 0) break
      await node.stop()
      expect(source.closed).to.equal(1)
      expect(source.produced).to.be.below(15_000)
    })
  })
}

describe('a client that goes away before its answer begins', () => {
  it('cancels parsing and writes that have not begun', async () => {
    let decided = 0
    type Update = CoordinatorNode['updateDocuments']
    const counted = (update: Update): Update => (...call) => {
      decided++
      return update(...call)
    }
    const node = new MemoryNode({ wrap: coordinator => (
      { ...coordinator, updateDocuments: counted(coordinator.updateDocuments) } as unknown as CoordinatorNode) })
    await node.put('/db')
    const { turns } = node.runtime
    const run = turns.run.bind(turns)
    const headers = { authorization: adminAuthorization, 'content-type': 'application/json' }
    const post = (signal?: AbortSignal) => node.open('POST', '/db/_bulk_docs', headers, '{"docs":[{},{}]}', signal)
    const leaving = new AbortController()
    turns.run = work => {
      leaving.abort()
      return run(work)
    }
    await post(leaving.signal).catch(() => {})
    expect(decided).to.equal(0)
    turns.run = run
    expect((await post()).status).to.equal(201)
    expect(decided).to.equal(1)
    await node.stop()
  })

  it('is not a server error when its calls to replicas are cancelled', async () => {
    const leaving = new AbortController()
    const node = new MemoryNode({ wrap: coordinator => ({
      ...coordinator,
      openChanges: (_database: unknown, _options: unknown, { signal }: {
        readonly signal: AbortSignal
      }) => new Promise((_resolve, reject) => {
        signal.addEventListener(
          'abort',
          () =>
            reject(new ApiError('timeout', undefined, {
              cause: new ReplicaError('cancelled', 'the caller has cancelled the call'),
            })),
        )
        leaving.abort()
      }),
    } as unknown as CoordinatorNode) })
    await node.put('/db?q=2')
    const answer = node.open('GET', '/db/_changes', { authorization: adminAuthorization }, undefined, leaving.signal)
    expect(await answer.then(() => 'answered', () => 'gone')).to.equal('gone')
    await node.stop()
    expect(node.log.messages('error')).to.deep.equal([])
  })

  it('is not a server error, whatever error its work ends with', async () => {
    const leaving = new AbortController()
    const brokenStream = new ApiError('internal_server_error', 'of a test', {
      cause: new ReplicaError('protocol', 'the stream broke'),
    })
    const node = new MemoryNode({
      wrap: coordinator => ({ ...coordinator, openDocument: async () => { leaving.abort(); throw brokenStream } }),
    })
    await node.put('/db')
    await node.open('GET', '/db/a', { authorization: adminAuthorization }, undefined, leaving.signal).catch(() => {})
    await node.stop()
    expect([node.log.messages('error'), node.log.messages('warn')]).to.deep.equal([[], []])
    expect(node.log.messages('debug')).to.include('the client is gone')
  })

  it('is not a server error when another error wraps ClientGoneError', async () => {
    const wrapped = new ApiError('internal_server_error', 'of a test', {
      cause: new ReplicaError('protocol', 'the source failed', { cause: new ClientGoneError() }),
    })
    const leaving = new AbortController()
    const work = Promise.withResolvers<void>()
    const node = new MemoryNode({
      wrap: coordinator => ({ ...coordinator, openDocument: async () => { work.resolve(); throw wrapped } }),
    })
    await node.put('/db')
    const answer = node.open('GET', '/db/a', { authorization: adminAuthorization }, undefined, leaving.signal)
      .catch(() => {})
    await work.promise
    await node.stop()
    leaving.abort()
    await answer
    expect([node.log.messages('error'), node.log.messages('warn')]).to.deep.equal([[], []])
  })
})

async function open(node: MemoryNode, target: string) {
  return node.open('GET', target, { authorization: adminAuthorization, accept: 'application/json' })
}
