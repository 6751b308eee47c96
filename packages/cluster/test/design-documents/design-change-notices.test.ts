import type { ControlPeer } from '@sectional/core'
import { shardRanges } from '@sectional/core'
import { expect } from 'chai'
import { DesignChangeNotices } from '../../src/design-documents/design-change-notices.ts'
import type { CommitListener } from '../../src/replicas/local-replicas.ts'

describe('the notices of changed design documents', () => {
  const shard = { incarnation: 'one', range: shardRanges(1)[0]! }
  let commit: CommitListener
  let calls: { readonly to: string; readonly answer: PromiseWithResolvers<void> }[]
  let changes: number
  let notices: DesignChangeNotices

  beforeEach(() => {
    calls = []
    changes = 0
    notices = new DesignChangeNotices({
      control: { node: 'a', connectedNodes: () => ['a', 'b'] },
      local: { onCommit: listener => { commit = listener; return () => { commit = () => {} } } },
      peers: { control: to => ({
        designChanged: () => {
          const answer = Promise.withResolvers<void>()
          calls.push({ to, answer })
          return answer.promise
        },
      }) satisfies Pick<ControlPeer, 'designChanged'> },
      onChange: () => { changes++ },
    })
    notices.start()
  })

  const turn = (): Promise<void> => new Promise(resolve => { setImmediate(resolve) })

  it('go to the other nodes, one at a time, and again when there was a change meanwhile', async () => {
    commit(shard, true, false)
    expect([changes, calls.length]).to.deep.equal([0, 0])
    for (let change = 0; change < 3; change++) commit(shard, true, true)
    expect([changes, calls.map(({ to }) => to)]).to.deep.equal([3, ['b']])
    calls[0]!.answer.resolve()
    await turn()
    expect(calls).to.have.length(2)
    calls[1]!.answer.resolve()
    await turn()
    expect(calls).to.have.length(2)
    commit(shard, true, true)
    expect(calls).to.have.length(3)
    calls[2]!.answer.resolve()
    await notices.stop()
  })

  it('may fail, and the stop waits for those that are under way', async () => {
    commit(shard, true, true)
    let stopped = false
    const stop = notices.stop().then(() => { stopped = true })
    await turn()
    expect(stopped).to.equal(false)
    calls[0]!.answer.reject(new Error('the link broke'))
    await stop
    commit(shard, true, true)
    expect([changes, calls.length]).to.deep.equal([1, 1])
  })
})
