import { expect } from 'chai'
import { clientAddress } from '../../src/request/client-address.ts'

const addressOf = (
  remoteAddress: string, forwarded?: string, trustedProxies: readonly string[] = ['127.0.0.1', '::1'],
): string => clientAddress(
  { remoteAddress, headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded } },
  { peerHeader: 'X-Forwarded-For', trustedProxies },
)

describe('the address of a client', () => {
  it('is that of the connection unless a trusted proxy names another one', () => {
    expect(addressOf('10.1.2.3', '10.9.9.9')).to.equal('10.1.2.3')
    expect(addressOf('127.0.0.1')).to.equal('127.0.0.1')
    expect(addressOf('127.0.0.1', '10.9.9.9')).to.equal('10.9.9.9')
    expect(addressOf('::ffff:127.0.0.1', '2001:db8::7')).to.equal('2001:db8::7')
    expect(clientAddress(
      { remoteAddress: '127.0.0.1', headers: { 'x-forwarded-for': '10.9.9.9' } },
      { peerHeader: undefined, trustedProxies: ['127.0.0.1'] },
    )).to.equal('127.0.0.1')
  })

  it('is the last one that no trusted proxy has, since those before it may be invented', () => {
    const proxies = ['127.0.0.1', '10.0.0.0/8']
    expect(addressOf('127.0.0.1', '1.1.1.1, 192.168.7.7, 10.200.0.1', proxies)).to.equal('192.168.7.7')
    expect(addressOf('10.4.4.4', '192.168.7.7', proxies)).to.equal('192.168.7.7')
    expect(addressOf('127.0.0.1', '10.0.0.5, 10.0.0.1', proxies)).to.equal('10.0.0.5')
  })

  it('is never a text that cannot be an address', () => {
    expect(addressOf('127.0.0.1', `, ${'x'.repeat(1000)} ,`)).to.equal('127.0.0.1')
    for (const text of ['garbage', '10.0.3.256', '10.0.3', '010.0.0.1', '1.2.3.4:x', '[::1', '::g', '[1.2.3.4]', ':']) {
      expect(addressOf('127.0.0.1', text), text).to.equal('127.0.0.1')
    }
  })

  it('is not one before a text that is no address, since it may be invented', () => {
    expect(addressOf('127.0.0.1', '1.1.1.1, unknown')).to.equal('127.0.0.1')
    expect(addressOf('127.0.0.1', '1.1.1.1, unknown, 10.0.0.5', ['127.0.0.1', '10.0.0.5'])).to.equal('10.0.0.5')
    expect(addressOf('127.0.0.1', 'unknown, 9.9.9.9')).to.equal('9.9.9.9')
  })

  it('has one form, without the port and the zone that proxies add', () => {
    for (const text of ['10.0.3.1', '10.0.3.1:1', '10.0.3.1:65535', '::ffff:10.0.3.1', '[::ffff:a00:301]:80']) {
      expect(addressOf('127.0.0.1', text), text).to.equal('10.0.3.1')
    }
    for (const text of ['2001:db8::7', '2001:DB8:0:0::7', '[2001:db8::7]', '[2001:db8::7]:4711', '2001:db8::7%eth0']) {
      expect(addressOf('127.0.0.1', text), text).to.equal('2001:db8::7')
    }
    expect(addressOf('2001:db8::1', '[2001:db8::2]:99, 10.9.9.9:5', ['2001:DB8:0::1'])).to.equal('10.9.9.9')
    expect(addressOf('127.0.0.1', '10.9.9.9:1, 10.1.1.1:2', ['127.0.0.1', '10.1.0.0/16'])).to.equal('10.9.9.9')
  })
})
