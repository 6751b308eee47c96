import { expect } from 'chai'
import {
  blobVerbs, changeVerbs, deriveVerbs, documentVerbs, localDocumentVerbs, mapVerbs, purgeVerbs, shardVerbs, upkeepVerbs,
  type CallContext,
} from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { bareCall, call, download, pages, upload, type VerbsOf } from '../../src/contracts/verb-table.ts'

const context: CallContext = { timeoutMs: 1000 }

/** A contract that is not one of a replica's. */
const shopVerbs = {
  price: call<string, number>({ waits: article => article === 'sold out' }),
  open: bareCall<boolean>(),
  list: pages<{ readonly from: string }, string>(),
  deliver: upload<number>(),
  fetch: download<string>(),
}

class Shop implements VerbsOf<typeof shopVerbs> {
  async price(article: string): Promise<number> { return article.length }
  async open(given: CallContext): Promise<boolean> { return given === context }
  async * list({ from }: { readonly from: string }): AsyncGenerator<readonly string[]> {
    yield [`${from}1`, `${from}2`]
  }

  async deliver(chunks: AsyncIterable<Uint8Array>): Promise<number> {
    let bytes = 0
    for await (const chunk of chunks) bytes += chunk.length
    return bytes
  }

  async * fetch(article: string): AsyncGenerator<Uint8Array> { yield Buffer.from(article) }
}

/** Forwards each call to a shop and records the verb's name. */
interface Route { readonly shop: Shop; readonly calls: string[] }

const RoutedShop = deriveVerbs<typeof shopVerbs, Route>(shopVerbs, {
  call: verb => (route, request, given) => verb.invoke(noted(route, verb.name), request, given),
  pages: verb => (route, request, given) => verb.invoke(noted(route, verb.name), request, given),
  upload: verb => (route, chunks, given) => verb.invoke(noted(route, verb.name), chunks, given),
  download: verb => (route, request, given) => verb.invoke(noted(route, verb.name), request, given),
})

function noted({ shop, calls }: Route, name: string): Shop {
  calls.push(name)
  return shop
}

async function* once<T>(item: T): AsyncGenerator<T> { yield item }

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

describe('a table of verbs', () => {
  it('gives a derived class a method of every shape, with the declared parameters', async () => {
    const calls: string[] = []
    const routed = new RoutedShop({ shop: new Shop(), calls })
    expect(await routed.price('lamp', context)).to.equal(4)
    expect(await routed.open(context)).to.equal(true)
    expect(await all(routed.list({ from: 'a' }, context))).to.deep.equal([['a1', 'a2']])
    expect(await routed.deliver(once(Buffer.from('abc')), context)).to.equal(3)
    expect(Buffer.concat(await all(routed.fetch('chair', context))).toString()).to.equal('chair')
    expect(calls).to.deep.equal(['price', 'open', 'list', 'deliver', 'fetch'])
  })

  it('makes the methods of a derived class once, for all its instances', () => {
    const parts = { shop: new Shop(), calls: [] }
    expect(new RoutedShop(parts).price).to.equal(new RoutedShop(parts).price)
    expect(Object.keys(new RoutedShop(parts))).to.deep.equal([])
  })

  it('tells a derivation which calls may wait', () => {
    const waits = mapVerbs<typeof shopVerbs, unknown>(shopVerbs, {
      call: verb => verb.waits?.('sold out') ?? false, pages: () => false, upload: () => false, download: () => false,
    })
    expect([...waits]).to.deep.equal([
      ['price', true], ['open', false], ['list', false], ['deliver', false], ['fetch', false],
    ])
  })
})

describe('the contracts of a replica', () => {
  const tables = { documentVerbs, changeVerbs, localDocumentVerbs, purgeVerbs, blobVerbs, upkeepVerbs }

  it('have at most 20 verbs each, and share none', () => {
    for (const [name, table] of Object.entries(tables)) expect(Object.keys(table).length, name).to.be.at.most(20)
    const names = Object.values(tables).flatMap(table => Object.keys(table))
    expect(new Set(names).size).to.equal(names.length)
    expect(Object.keys(shardVerbs)).to.have.members(names)
  })

  it('are those that the replica in maps implements', () => {
    const methods = Object.getOwnPropertyNames(MemoryShardReplica.prototype)
    expect(methods).to.include.members(Object.keys(shardVerbs))
  })

  it('let a call wait only when its reader names a history of the replica', () => {
    expect(changeVerbs.waitForChange.waits?.({ history: '', sequence: 0 })).to.equal(false)
    expect(changeVerbs.waitForChange.waits?.({ history: 'h', sequence: 0 })).to.equal(true)
  })
})
