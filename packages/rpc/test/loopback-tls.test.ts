/** Tests that certificates decide which node a peer may be, over real WebSockets with TLS on loopback. */
import assert from 'node:assert/strict'
import { fixedTlsContext, RealClock, WebSocketNetwork } from '@sectional/runtime'
import type { LinkTlsContext } from '@sectional/runtime'
import { testAuthority } from '@sectional/runtime/test-certificates'
import type { CertificateContent } from '@sectional/runtime/test-certificates'
import { logged, TestNode } from './test-node.ts'

const authority = testAuthority('cluster')
const host = '127.0.0.1'
const tries = { backoffMinMs: 5, backoffMaxMs: 20, backoffAbsentMaxMs: 20 }
const onlyNode = (name: string): CertificateContent => ({ addresses: [host], uris: [`sectional:${name}`] })

describe('links over TLS on loopback', () => {
  const nodes: TestNode[] = []
  const networks: WebSocketNetwork[] = []
  afterEach(async () => {
    await Promise.all(nodes.splice(0).map(node => node.peers.stop()))
    for (const network of networks.splice(0)) network.revoke()
  })

  /** Starts a node of that name with a certificate that the cluster's authority has signed. */
  function start(name: string, certificate: CertificateContent): Promise<TestNode> {
    return startWith(name, authority.issue(certificate))
  }

  async function startWith(name: string, certificate: LinkTlsContext): Promise<TestNode> {
    const network = new WebSocketNetwork({ tls: fixedTlsContext(certificate) })
    networks.push(network)
    const node = new TestNode({
      name: host, network, clock: new RealClock(), limits: tries, seed: nodes.length + 1,
    })
    nodes.push(node)
    node.peers.setIdentity({ ...node.identity, node: name })
    return node.start()
  }

  function addressOf(node: TestNode): string {
    return `${host}:${node.peers.listening?.port}`
  }

  function linked(node: TestNode): Promise<void> {
    return new Promise(resolve => {
      if (node.connected().length > 0) return resolve()
      const off = node.peers.onChange((_peer, up) => { if (up) { off(); resolve() } })
    })
  }

  /** Resolves when the log of a node has a refusal for that reason. */
  async function refuses(node: TestNode, message: string, reason: RegExp): Promise<void> {
    while (!logged(node, 'warn', reason).some(line => line.message === message)) {
      await new Promise(resolve => { setTimeout(resolve, 5) })
    }
  }

  it('open when each certificate names its node, by a URI or by the host', async () => {
    const a = await start(`a@${host}`, onlyNode(`a@${host}`))
    const b = await start(`b@${host}`, { addresses: [host] })
    a.peers.setPeers([addressOf(b)])
    await Promise.all([linked(a), linked(b)])
    assert.deepEqual([a.connected(), b.connected()], [[`b@${host}`], [`a@${host}`]])
  })

  const reason = new RegExp(`the certificate of b@${host} must name URI:sectional:b@${host}, `
    + `it names IP Address:${host}, URI:sectional:a@${host}`)

  it('are refused to a node that dials under the name of another one', async () => {
    const c = await start(`c@${host}`, onlyNode(`c@${host}`))
    const impostor = await start(`b@${host}`, onlyNode(`a@${host}`))
    impostor.peers.setPeers([addressOf(c)])
    await refuses(c, 'the handshake of a peer was refused', reason)
    await refuses(impostor, 'a peer refused the handshake', reason)
    assert.deepEqual([c.connected(), impostor.connected()], [[], []])
    assert.notEqual(await c.metric('sectional_rpc_handshakes_refused_total', 'certificate'), 0)
  })

  it('are refused to a node that listens under the name of another one', async () => {
    const c = await start(`c@${host}`, onlyNode(`c@${host}`))
    const impostor = await start(`b@${host}`, onlyNode(`a@${host}`))
    c.peers.setPeers([addressOf(impostor)])
    await refuses(c, 'the handshake of a peer was refused', reason)
    await refuses(impostor, 'a peer refused the handshake', reason)
    assert.deepEqual([c.connected(), impostor.connected()], [[], []])
  })

  it('are refused to a node whose certificate another authority signed, which the listening node logs', async () => {
    const c = await start(`c@${host}`, onlyNode(`c@${host}`))
    const foreign = testAuthority('stranger').issue(onlyNode(`b@${host}`))
    const impostor = await startWith(`b@${host}`, { ...foreign, ca: authority.identity.ca })
    impostor.peers.setPeers([addressOf(c)])
    await refuses(c, 'the handshake of a peer was refused', /no authority in cluster\/tls_ca_file of this node/)
    assert.notEqual(await c.metric('sectional_rpc_handshakes_refused_total', 'certificate'), 0)
    assert.deepEqual([c.connected(), impostor.connected()], [[], []])
  })

  it('are refused to a node whose certificate is for another host', async () => {
    const c = await start('c@127.0.0.1', onlyNode('c@127.0.0.1'))
    const impostor = await start('b@db2.example.org', { hosts: ['db1.example.org'] })
    impostor.peers.setPeers([addressOf(c)])
    await refuses(
      c, 'the handshake of a peer was refused',
      /the certificate of b@db2\.example\.org must name DNS:db2\.example\.org, it names DNS:db1\.example\.org/,
    )
    c.peers.setPeers([addressOf(impostor)])
    await refuses(c, 'a peer cannot be reached', /does not match certificate's altnames: IP: 127\.0\.0\.1/)
    assert.deepEqual([c.connected(), impostor.connected()], [[], []])
  })
})
