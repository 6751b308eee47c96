import { expect } from 'chai'
import {
  changeVerbs, controlVerbs, deriveVerbs, indexVerbs, mapVerbs, shardVerbs, type CallContext, type VerbTable,
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
  till: { total: bareCall<number>(), pay: call<number, boolean>() },
}

class Till implements VerbsOf<typeof shopVerbs.till> {
  async total(given: CallContext): Promise<number> { return given === context ? 7 : 0 }
  async pay(amount: number): Promise<boolean> { return amount >= 7 }
}

class Shop implements VerbsOf<typeof shopVerbs> {
  readonly till = new Till()

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

  it('gives a derived class a member for each inner table, with the methods of its verbs', async () => {
    const calls: string[] = []
    const routed = new RoutedShop({ shop: new Shop(), calls })
    expect(await routed.till.total(context)).to.equal(7)
    expect(await routed.till.pay(3, context)).to.equal(false)
    expect(calls).to.deep.equal(['total', 'pay'])
    expect(routed).not.to.have.property('total')
    expect(routed.till).not.to.have.property('price')
  })

  it('makes the methods of a derived class once, for all its instances, and each member once for an instance', () => {
    const parts = { shop: new Shop(), calls: [] }
    const [one, other] = [new RoutedShop(parts), new RoutedShop(parts)]
    expect(one.price).to.equal(other.price)
    expect(one.till.pay).to.equal(other.till.pay)
    expect(one.till).to.equal(one.till)
    expect(one.till).not.to.equal(other.till)
    expect(Object.keys(one)).to.deep.equal([])
  })

  it('tells a derivation which calls may wait', () => {
    const waits = mapVerbs<typeof shopVerbs, unknown>(shopVerbs, {
      call: verb => verb.waits?.('sold out') ?? false, pages: () => false, upload: () => false, download: () => false,
    })
    expect([...waits]).to.deep.equal([
      ['price', true], ['open', false], ['list', false], ['deliver', false], ['fetch', false],
      ['total', false], ['pay', false],
    ])
  })
})

describe('the contracts between layers', () => {
  const contracts: Readonly<Record<string, VerbTable>> = {
    ShardReplica: shardVerbs, BlobReplica: shardVerbs.blobs, UpkeepReplica: shardVerbs.upkeep,
    IndexReplica: indexVerbs, ControlPeer: controlVerbs,
  }

  /** Returns the names of a contract's own verbs, without those of its members. */
  function verbsOf(table: VerbTable): string[] {
    return Object.keys(table).filter(name => 'shape' in table[name]!)
  }

  it('have at most 20 verbs each', () => {
    for (const [name, table] of Object.entries(contracts)) {
      expect(verbsOf(table).length, name).to.be.within(1, 20)
    }
  })

  it('of a replica and of its members share no name of a verb', () => {
    const names = [shardVerbs, shardVerbs.blobs, shardVerbs.upkeep].flatMap(verbsOf)
    expect(new Set(names).size).to.equal(names.length)
  })

  it('are those that the replica in memory implements', () => {
    const replica = new MemoryShardReplica({ history: 'h' })
    for (const [object, table] of [
      [replica, shardVerbs], [replica.blobs, shardVerbs.blobs], [replica.upkeep, shardVerbs.upkeep],
    ] as const) {
      expect(Object.getOwnPropertyNames(Object.getPrototypeOf(object))).to.include.members(verbsOf(table))
    }
  })

  it('let a call wait only when its reader names a history of the replica', () => {
    expect(changeVerbs.waitForChange.waits?.({ history: '', sequence: 0 })).to.equal(false)
    expect(changeVerbs.waitForChange.waits?.({ history: 'h', sequence: 0 })).to.equal(true)
  })
})
