import { ApiError } from '@sectional/core'
import { createMemoryRuntime, ManualClock } from '@sectional/runtime'
import { expect } from 'chai'
import { DesignDocument, DesignDocuments } from '../../src/contracts/design-document.ts'
import type { DatabaseRecord } from '../../src/control/cluster-state.ts'
import { DesignDocumentCache } from '../../src/design-documents/design-document-cache.ts'
import { defaultDesignDocumentOptions } from '../../src/design-documents/design-document-options.ts'
import type { DesignDocumentsRead } from '../../src/design-documents/design-documents-read.ts'

function database(name: string): DatabaseRecord {
  return { name, incarnation: name } as DatabaseRecord
}

function read(revision: string, bytes = 2): DesignDocumentsRead {
  const document = new DesignDocument('_design/d', revision, Buffer.alloc(bytes, ' '))
  return { documents: new DesignDocuments([[document.id, document]]), confirmed: true }
}

/** A cache whose readings the test ends. */
function manualCache(bytesMax = 1024 * 1024) {
  const readings: { readonly database: string; readonly end: (result: DesignDocumentsRead | Error) => void }[] = []
  const clock = new ManualClock()
  const cache = new DesignDocumentCache(
    createMemoryRuntime({ clock }), { ...defaultDesignDocumentOptions, bytesMax: () => bytesMax }, db => {
      const { promise, resolve, reject } = Promise.withResolvers<DesignDocumentsRead>()
      readings.push({ database: db.name, end: result => result instanceof Error ? reject(result) : resolve(result) })
      return promise
    },
  )
  const open = async (name: string): Promise<string | undefined> =>
    (await cache.open(database(name))).get('_design/d')?.revision
  return { cache, clock, readings, open }
}

describe('the entries of the cache of design documents', () => {
  it('begin another reading for requests after a write, not for those before it', async () => {
    const { cache, readings, open } = manualCache()
    const before = open('x')
    cache.written('x')
    const after = open('x')
    readings[0]!.end(read('1-a'))
    expect(await before).to.equal('1-a')
    expect(cache.current(database('x'))).to.equal(undefined)
    await Promise.resolve()
    expect(readings).to.have.length(2)
    readings[1]!.end(read('2-b'))
    expect(await after).to.equal('2-b')
    expect(cache.current(database('x'))?.get('_design/d')?.revision).to.equal('2-b')
  })

  it('are used after a failed reading when another node has changed a document, not when this one has', async () => {
    const { cache, readings, open } = manualCache()
    const first = open('x')
    readings[0]!.end(read('1-a'))
    await first
    cache.changed('x')
    const changed = open('x')
    readings[1]!.end(new ApiError('service_unavailable'))
    expect(await changed).to.equal('1-a')
    cache.written('x')
    const written = open('x').catch((error: unknown) => error)
    readings[2]!.end(new ApiError('service_unavailable'))
    expect(await written).to.be.instanceOf(ApiError)
    expect(cache.current(database('x'))).to.equal(undefined)
  })

  it('are read anew after a write although a request from before it has stopped waiting', async () => {
    const { cache, clock, readings, open } = manualCache()
    const first = open('x')
    readings[0]!.end(read('1-a'))
    await first
    cache.changed('x')
    const before = open('x')
    cache.written('x')
    const after = open('x')
    await clock.advance(defaultDesignDocumentOptions.confirmWaitMs)
    expect(await before).to.equal('1-a')
    readings[1]!.end(read('1-a'))
    await clock.advance(0)
    expect(readings).to.have.length(3)
    readings[2]!.end(read('2-b'))
    expect(await after).to.equal('2-b')
  })

  it('are not used when only a reading from before the write has succeeded', async () => {
    const { cache, readings, open } = manualCache()
    const before = open('x')
    cache.written('x')
    const after = open('x').catch((error: unknown) => error)
    readings[0]!.end(read('1-a'))
    expect(await before).to.equal('1-a')
    await Promise.resolve()
    readings[1]!.end(new ApiError('service_unavailable'))
    expect(await after).to.be.instanceOf(ApiError)
  })

  it('are removed when they exceed the memory, the least recently used first', async () => {
    const { cache, clock, readings, open } = manualCache(10_000)
    for (const name of ['a', 'b', 'c', 'd']) {
      const opened = open(name)
      readings.at(-1)!.end(read('1-a', 500))
      await opened
      await clock.advance(1)
      expect(cache.current(database('a')), name).to.not.equal(undefined)
    }
    expect(cache.bytes).to.be.below(10_000)
    expect(cache.current(database('b'))).to.equal(undefined)
    expect(cache.current(database('d'))).to.not.equal(undefined)
  })
})
