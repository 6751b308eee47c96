import { expect } from 'chai'
import { ShardChanges } from '../../src/directory/shard-changes.ts'
import type { ShardChangeKind } from '../../src/directory/shard-changes.ts'

describe('changes of one shard', () => {
  let changes: ShardChanges
  let begun: string[]
  let ends: Map<string, PromiseWithResolvers<string>>

  beforeEach(() => {
    changes = new ShardChanges()
    begun = []
    ends = new Map()
  })

  /** Requests a change that lasts until `end` is called. */
  function run(kind: ShardChangeKind, id: string): Promise<string> {
    const ended = Promise.withResolvers<string>()
    ends.set(id, ended)
    return changes.run('shard', kind, () => {
      begun.push(id)
      return ended.promise
    })
  }

  async function settle(): Promise<void> {
    await new Promise(resolve => { setImmediate(resolve) })
  }

  async function end(id: string): Promise<void> {
    ends.get(id)!.resolve(id)
    await settle()
  }

  it('run one after the other, also those that are requested after an earlier one has ended', async () => {
    const results = [run('create', 'first'), run('drop', 'second')]
    expect(begun).to.deep.equal(['first'])
    await end('first')
    expect(begun).to.deep.equal(['first', 'second'])
    expect(changes.newest('shard')).to.equal('drop')
    results.push(run('create', 'third'))
    await settle()
    expect(begun, 'the second one runs').to.deep.equal(['first', 'second'])
    let allEnded = false
    void changes.ended().then(() => { allEnded = true })
    await end('second')
    expect([begun, allEnded]).to.deep.equal([['first', 'second', 'third'], false])
    await end('third')
    expect(allEnded).to.equal(true)
    expect(await Promise.all(results)).to.deep.equal(['first', 'second', 'third'])
    expect(changes.newest('shard')).to.equal(undefined)
  })

  it('run also after one that has failed', async () => {
    const failing = run('create', 'first').catch((error: unknown) => error)
    const next = run('drop', 'second')
    ends.get('first')!.reject(new Error('the disk is full'))
    expect(await failing).to.be.instanceOf(Error)
    await end('second')
    expect(await next).to.equal('second')
    expect(changes.newest('shard')).to.equal(undefined)
  })
})
