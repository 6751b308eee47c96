import { encodeSinceToken } from '@sectional/core'
import { expect } from 'chai'
import { repeatedRows } from '../../src/checkers/changes-complete.ts'
import type { ReplicaContents } from '../../src/checkers/disk-contents.ts'
import type { FinalDatabase } from '../../src/checkers/final-state.ts'
import { PurgeRecords } from '../../src/checkers/purge-records.ts'
import type { Operation } from '../../src/workload/history.ts'

const range = { begin: 0, end: 2 ** 32 - 1 }
const histories = { one: '1'.repeat(32), two: '2'.repeat(32) }

/** Returns the replica of a node with the sequence of each document's last change. */
function replica(
  node: keyof typeof histories, sequence: number, sequences: Readonly<Record<string, number>>,
): ReplicaContents {
  return {
    node, range: '00000000-ffffffff', history: histories[node], sequence, sequences: new Map(Object.entries(sequences)),
    documents: new Map(), locals: new Map(), problems: [],
  }
}

/**
 * Returns the findings when these documents come after a token with these sequences of nodes, the node that was read
 * first.
 *
 * @param purged documents of which a client purged something
 */
function findings(
  replicas: readonly ReplicaContents[], token: readonly (readonly [keyof typeof histories, number])[],
  ids: readonly string[], purged: readonly string[] = [],
): readonly string[] {
  const final: FinalDatabase = {
    record: { incarnation: 'i', shards: [{ range }] } as unknown as FinalDatabase['record'], replicas,
    documents: new Map(),
  }
  const text = encodeSinceToken(token.map(([node, sequence]) => ({ range, node, history: histories[node], sequence })))
  const since = { token: text, database: 'db', incarnation: 'i', from: null, rows: [] }
  const purges = purged.map(id => ({ kind: 'purge', database: 'db', id, outcome: 'done' }) as Operation)
  const rows = ids.map(id => ({ id, leaves: ['1-a'], token: null }))
  return repeatedRows('db', final, since, rows, new PurgeRecords(purges))
}

describe('the checker of changes feeds', () => {
  const one = replica('one', 14, { a: 3, b: 9 })

  it('finds a row that the reader had passed on the replica that it read', () => {
    expect(findings([one], [['one', 6]], ['a', 'b'])).to.have.length(1)
    expect(findings([one], [['one', 6]], ['b'])).to.deep.equal([])
  })

  it('finds such a row also when another replica of the token received it later', () => {
    const two = replica('two', 8, { a: 2, b: 7 })
    expect(findings([one, two], [['one', 6], ['two', 1]], ['a', 'b'])).to.have.length(1)
    expect(findings([one, two], [['one', 6], ['two', 1]], ['b'])).to.deep.equal([])
  })

  it('accepts a row that a purge moved on another replica of the token only', () => {
    const two = replica('two', 8, { a: 8, b: 2 })
    expect(findings([one, two], [['one', 6], ['two', 6]], ['a'], ['b'])).to.have.length(1)
    expect(findings([one, two], [['one', 6], ['two', 6]], ['a'], ['a'])).to.deep.equal([])
    expect(findings([one, two], [['one', 6], ['two', 8]], ['a'], ['a'])).to.have.length(1)
    expect(findings([one], [['one', 6]], ['a'], ['a'])).to.have.length(1)
  })

  it('counts the rows when the replica that was read is gone', () => {
    const two = replica('two', 8, { a: 2, b: 8 })
    expect(findings([two], [['one', 6], ['two', 7]], ['a', 'b'])).to.have.length(1)
    expect(findings([two], [['one', 6], ['two', 7]], ['b'])).to.deep.equal([])
  })
})
