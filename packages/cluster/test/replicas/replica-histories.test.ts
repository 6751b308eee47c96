import { expect } from 'chai'
import { ReplicaHistories } from '../../src/replicas/replica-histories.ts'

describe('the nodes of replica histories', () => {
  it('are those on which they were last found', () => {
    const histories = new ReplicaHistories()
    histories.learn('one', 'a')
    histories.learn('two', 'b')
    histories.learn('one', 'c')
    expect(['one', 'two', 'three'].map(history => histories.node(history))).to.deep.equal(['c', 'b', undefined])
  })
})
