import { expect } from 'chai'
import { ShardHost } from '../../src/index.ts'
import type { ShardEngine } from '../../src/index.ts'
import { collect, context, revision, shardA, shardRuntime } from '../shard-world.ts'

describe('a call on several documents', () => {
  let host: ShardHost
  let engine: ShardEngine

  beforeEach(async () => {
    host = await ShardHost.open(shardRuntime())
    engine = await host.create(shardA)
  })
  afterEach(() => host.close())

  it('opens conflicting revisions of each of them with the attempts that made them', async () => {
    const made = ['a', 'b', 'c'].flatMap((id, at) => ['x', 'y'].map((hash, branch) => (
      { ...revision(id, [hash], {}), attempt: 2 * at + branch })))
    await engine.storeRevisions({ revisions: made, revsLimit: 10 }, context)
    const requests = ['a', 'b', 'c'].map(id => ({ id, revisions: ['1-x', '1-y'], latest: false }))
    const opened = await engine.openRevisions(requests, context)
    expect(opened.flat().map(each => each.kind === 'found' && each.revision.attempt)).to.deep.equal([0, 1, 2, 3, 4, 5])
  })

  it('changes no document of which it only adds ancestors beyond the limit of revisions', async () => {
    const store = (...paths: readonly (readonly [id: string, path: readonly string[]])[]): Promise<unknown> =>
      engine.storeRevisions({ revisions: paths.map(([id, path]) => revision(id, path, {})), revsLimit: 2 }, context)
    const changes = async (): Promise<readonly unknown[]> => {
      const request = { since: 0, descending: false, body: false, locals: false }
      return (await collect(engine.scanChanges(request, context))).map(({ id, sequence }) => [id, sequence])
    }
    await store(['b', ['z', 'y', 'x']])
    await store(['a', ['x']], ['b', ['z', 'y', 'x']], ['c', ['x']])
    expect(await changes()).to.deep.equal([['b', 1], ['a', 2], ['c', 3]])
  })
})
