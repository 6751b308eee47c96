import { expect } from 'chai'
import { AddressGroups } from '../src/address-groups.ts'

describe('AddressGroups', () => {
  it('gives up the oldest of the address with the most, until nothing is left', () => {
    const groups = new AddressGroups<number, string>()
    for (const [index, address] of ['a', 'b', 'b', 'a', 'b'].entries()) groups.add(address, index, `${address}${index}`)
    expect([groups.size, groups.get('b', 2), groups.get('a', 2)]).to.deep.equal([5, 'b2', undefined])
    groups.delete('a', 2)
    expect(groups.size).to.equal(5)
    expect([groups.takeFromLargest(), groups.takeFromLargest()]).to.deep.equal(['b1', 'a0'])
    groups.delete('b', 2)
    expect([groups.size, groups.takeFromLargest(), groups.takeFromLargest()]).to.deep.equal([2, 'a3', 'b4'])
    expect([groups.size, groups.takeFromLargest()]).to.deep.equal([0, undefined])
  })
})
