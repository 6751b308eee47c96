import { expect } from 'chai'
import { addressedHost, addressedOrigin } from '../../src/request/forwarded-headers.ts'
import { MemoryNode } from '../memory-node.ts'

const options = {
  trustedProxies: ['127.0.0.1', '10.0.0.0/8'], forwardedHostHeader: 'x-forwarded-host',
  forwardedProtoHeader: 'x-forwarded-proto', forwardedSslHeader: 'x-forwarded-ssl',
}

function origin(
  headers: Record<string, string>, { remoteAddress = '10.1.1.1', encrypted = false } = {}, changed = {},
): string {
  return addressedOrigin({ remoteAddress, headers: { host: 'node:5984', ...headers }, encrypted },
    { ...options, ...changed })
}

describe('the headers of a proxy', () => {
  it('name the host and the protocol that its client used', () => {
    expect(origin({})).to.equal('http://node:5984')
    expect(origin({ 'x-forwarded-host': 'db.example' })).to.equal('http://db.example')
    expect(origin({ 'x-forwarded-proto': 'https' })).to.equal('https://node:5984')
    expect(origin({ 'x-forwarded-ssl': 'on' })).to.equal('https://node:5984')
    expect(origin({ 'x-forwarded-ssl': 'off', 'x-forwarded-proto': 'ftp' })).to.equal('http://node:5984')
    expect(origin({}, { encrypted: true })).to.equal('https://node:5984')
    expect(origin({ 'x-forwarded-proto': 'http' }, { encrypted: true })).to.equal('http://node:5984')
    expect(addressedHost({ remoteAddress: '10.1.1.1', headers: {} }, options)).to.equal(undefined)
  })

  it('say nothing when they are empty', () => {
    const empty = { 'x-forwarded-host': '', 'x-forwarded-proto': '', 'x-forwarded-ssl': '' }
    expect(origin(empty)).to.equal('http://node:5984')
    expect(origin(empty, { encrypted: true })).to.equal('https://node:5984')
  })

  it('are ignored when no trusted proxy sends them', () => {
    const headers = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https', 'x-forwarded-ssl': 'on' }
    for (const remoteAddress of ['192.0.2.1', '::1', '']) {
      expect(origin(headers, { remoteAddress })).to.equal('http://node:5984')
    }
    expect(origin({ 'x-forwarded-proto': 'http' }, { remoteAddress: '192.0.2.1', encrypted: true }))
      .to.equal('https://node:5984')
    expect(origin(headers, { remoteAddress: '::ffff:127.0.0.1' })).to.equal('https://evil.example')
  })

  it('can have other names, and the usual ones then mean nothing', async () => {
    const node = new MemoryNode()
    await node.put('/db')
    node.configuration.put('chttpd', 'x_forwarded_host', 'X-Public-Host')
    node.configuration.put('chttpd', 'x_forwarded_proto', 'X-Public-Proto')
    node.configuration.put('chttpd', 'x_forwarded_ssl', 'X-Public-Ssl')
    const usual = { 'x-forwarded-host': 'a.example', 'x-forwarded-proto': 'https', 'x-forwarded-ssl': 'on' }
    const location = async (id: string, headers: Record<string, string>): Promise<unknown> =>
      (await node.put(`/db/${id}`, {}, { ...usual, ...headers })).headers['location']
    expect(await location('1', {})).to.equal('http://node.example:5984/db/1')
    expect(await location('2', { 'x-public-host': 'b.example', 'x-public-proto': 'https' }))
      .to.equal('https://b.example/db/2')
    expect(await location('3', { 'x-public-ssl': 'on' })).to.equal('https://node.example:5984/db/3')
    await node.stop()
  })

  it('of strangers neither choose a virtual host nor its rules of CORS, nor appear in answers', async () => {
    const node = new MemoryNode()
    await node.put('/db')
    node.configuration.put('vhosts', 'blog.example', '/db')
    node.configuration.put('chttpd', 'enable_cors', 'true')
    node.configuration.put('cors:blog.example', 'origins', 'https://app.example')
    const headers = { 'x-forwarded-host': 'blog.example', 'origin': 'https://app.example' }
    expect((await node.put('/doc', {}, headers)).headers).to.include({
      'location': 'http://blog.example/db/doc', 'access-control-allow-origin': 'https://app.example',
    })
    node.configuration.put('chttpd', 'trusted_proxies', '10.0.0.1')
    expect((await node.get('/db/doc', headers)).headers).not.to.have.property('access-control-allow-origin')
    expect((await node.put('/db/other', {}, headers)).headers['location']).to.equal(
      'http://node.example:5984/db/other',
    )
    await node.stop()
  })
})
