import { expect } from 'chai'
import { clientNetwork } from '../src/client-network.ts'

describe('the network of a client', () => {
  it('has 64 bits of an IPv6 address', () => {
    for (const [address, network] of [
      ['2001:db8::7', '2001:db8:0:0::/64'], ['2001:db8::', '2001:db8:0:0::/64'], ['::1', '0:0:0:0::/64'],
      ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'], ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
      ['::1:2:3:4:5:6:7', '0:1:2:3::/64'], ['1::2:3:4:5:6:7', '1:0:2:3::/64'], ['fe80::1%eth0', 'fe80:0:0:0::/64'],
      ['2001:db8:1:2:3:4:10.0.0.1', '2001:db8:1:2::/64'], ['64:ff9b:1::1', '64:ff9b:1:0::/64'],
    ] as const) {
      expect(clientNetwork(address), address).to.equal(network)
    }
  })

  it('is the address itself with IPv4, and a text that is no address', () => {
    for (const address of ['10.0.0.1', '64:ff9b::a00:1', '', 'writes']) expect(clientNetwork(address)).to.equal(address)
    expect(clientNetwork('::ffff:10.0.0.1')).to.equal('10.0.0.1')
  })
})
