import { expect } from 'chai'
import { ApiError, parseSelector } from '@sectional/core'
import type { FoundDocument } from '@sectional/core'
import { createMemoryRuntime } from '@sectional/runtime'
import type { DatabaseRecord } from '../../src/control/cluster-state.ts'
import type { FindScope } from '../../src/find/find-scope.ts'
import { FindTally } from '../../src/find/find-tally.ts'
import { quorumMatches } from '../../src/find/quorum-matches.ts'
import { bytes } from '../replica-world.ts'

describe('the documents of a query with r', () => {
  it('are not read further after the client has disconnected, although none of them matches', async () => {
    const client = new AbortController()
    let read = 0
    const scope = {
      runtime: createMemoryRuntime(),
      options: { requestCallsMax: 4 },
      openDocument: async () => {
        if (++read === 40) client.abort()
        return { leaves: [{ revision: '1-a', deleted: false }], body: bytes({ group: 1 }) }
      },
    } as unknown as FindScope
    async function* candidates() {
      yield Array.from({ length: 1000 }, (_, number) => ({ id: `d${number}` }) as FoundDocument)
    }
    const query = { selector: parseSelector({ group: 9 }), r: 2, documents: 'winner' } as const
    const matches = quorumMatches(
      scope, {} as DatabaseRecord, candidates(), query, new FindTally(), { requestId: 'test', signal: client.signal },
    )
    const failure = await matches.next().catch((error: unknown) => error)
    expect(failure).to.be.instanceOf(ApiError)
    expect(read).to.be.below(100)
  })
})
