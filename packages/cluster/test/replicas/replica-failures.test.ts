import { expect } from 'chai'
import { indexAborted, ReplicaError } from '@sectional/core'
import type { ReplicaErrorCode } from '@sectional/core'
import { asReplicaError, shardFailure } from '../../src/replicas/replica-failures.ts'

describe('failures of all replicas of a shard', () => {
  const told = (...codes: ReplicaErrorCode[]): string => {
    const { error, reason } = shardFailure(codes.map(code => new ReplicaError(code, 'of a test')))
    return `${error}: ${reason}`
  }

  it('report attachment content as lost only when every replica lacks it: one that is away may have it', () => {
    expect(told('missing_blob', 'damaged_blob')).to.match(
      /^internal_server_error: No replica of the shard has the complete content of an attachment/,
    )
    for (const code of ['unreachable', 'not_hosted', 'closed', 'timeout', 'overloaded'] as const) {
      expect(told('missing_blob', code), code).to.match(
        /^service unavailable: No replica of the shard that answers has the complete content of an attachment/,
      )
    }
    expect(told('unreachable', 'not_hosted')).to.equal('service unavailable: No DB shards could be opened.')
  })

  it('ask a client to retry when all are overloaded, and report a full disk before other failures', () => {
    expect(told('overloaded', 'unreachable')).to.match(/^service unavailable/)
    expect(told('overloaded', 'storage')).to.match(/^insufficient_storage/)
    expect(told('timeout', 'not_hosted')).to.match(/^timeout/)
    expect(told('overloaded', 'timeout')).to.match(/^timeout/)
    expect(told('unreachable')).to.equal('service unavailable: No DB shards could be opened.')
  })

  it('mean that the shard is out of reach, also for callers that look at the cause, when nobody was asked', () => {
    const failure = shardFailure([])
    expect(failure.status).to.equal(503)
    expect(shardFailure([asReplicaError(failure.cause)]).status).to.equal(503)
  })

  it('say what is wrong with the functions of an index', () => {
    expect(told('timeout', 'compilation', 'unsupported')).to.equal('compilation_error: of a test')
    expect(shardFailure([indexAborted('my_error', 'because: of a test'), new ReplicaError('timeout', 'slow')]))
      .to.include({ status: 500, error: 'my_error', reason: 'because: of a test' })
    expect(told('exhausted', 'unreachable')).to.equal('timeout: of a test')
    expect(told('unsupported', 'unreachable')).to.equal('not_implemented: of a test')
    expect(told('unsupported', 'overloaded')).not.to.match(/^not_implemented/)
  })
})
