import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { ConnectionOptions, TLSSocket } from 'node:tls'
import { expect } from 'chai'
import type { HttpServer } from '../../src/http/http-listener.ts'
import { NodeHttpListener } from '../../src/http/http-listener-node.ts'
import type { HttpsOptions, NodeHttpListenerOptions } from '../../src/http/http-listener-node.ts'
import { testAuthority } from '../../src/tls/test-certificates.ts'
import { fixedTlsContext } from '../../src/tls/tls-context.ts'
import type { TlsContext } from '../../src/tls/tls-context.ts'

const authority = testAuthority('https')
const { identity } = authority
const host = '127.0.0.1'

describe('HTTPS', () => {
  let listener: NodeHttpListener
  afterEach(() => listener.revoke())

  function listen(
    https: Partial<HttpsOptions> = {}, options: NodeHttpListenerOptions = {}, encrypted = true,
  ): Promise<HttpServer> {
    listener = new NodeHttpListener({
      ...options, https: { context: fixedTlsContext(identity), clientCertificates: 'ignored', ...https },
    })
    return serve(encrypted)
  }

  function serve(encrypted: boolean): Promise<HttpServer> {
    return listener.listen({ host, port: 0, encrypted }, exchange => {
      exchange.send(exchange.isRefused ? 503 : 200, {}, exchange.encrypted ? 'encrypted' : 'plain')
    })
  }

  async function secure(server: HttpServer, options: ConnectionOptions = {}): Promise<TLSSocket> {
    const socket = connectTls({ ...server.address, ca: identity.ca, ...options })
    await once(socket, 'secureConnect')
    return socket
  }

  /** Returns what the server sends until it closes the connection; empty when it refuses the handshake. */
  async function get(socket: Socket): Promise<string> {
    let received = ''
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    try {
      for await (const part of socket) received += String(part)
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).to.match(/^(ERR_SSL_|ECONNRESET|EPIPE)/)
    }
    return received
  }

  /** Connects as `client` does, and returns the answer to a request, or the code of the error. */
  async function attempt(server: HttpServer, client: ConnectionOptions): Promise<string> {
    return secure(server, client).then(get, (error: NodeJS.ErrnoException) => error.code ?? '')
  }

  it('needs a certificate', async () => {
    listener = new NodeHttpListener()
    const failure: Error = await listener.listen({ host, port: 0, encrypted: true }, () => {}).then(
      () => new Error('listens'), error => error,
    )
    expect(failure.message).to.equal('there is no certificate for HTTPS')
  })

  it('is served beside HTTP, within limits that both share', async () => {
    const server = await listen({}, { connectionsMax: 2 })
    const plain = await serve(false)
    expect(await get(await secure(server))).to.match(/^HTTP\/1.1 200 [^]*encrypted$/)
    const idle = await secure(server)
    idle.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await once(idle, 'data')
    const closed = once(idle, 'close')
    const first = connect(plain.address)
    const second = connect(plain.address)
    expect(await Promise.all([get(first), get(second)])).to.satisfy((answers: string[]) =>
      answers.every(answer => answer.startsWith('HTTP/1.1 200 ') && answer.endsWith('plain')))
    // The connection of HTTPS was idle for longest, and had to make room for those of HTTP.
    await closed
  })

  it('shows a new certificate to new connections, and keeps those that are open', async () => {
    const listeners = new Set<() => void>()
    const source: { current: TlsContext; onChange(listener: () => void): () => void } = {
      current: identity,
      onChange: changed => { listeners.add(changed); return () => { listeners.delete(changed) } },
    }
    const server = await listen({ context: source })
    const before = await secure(server)
    source.current = authority.issue({ addresses: [host], uris: ['urn:second'] })
    for (const changed of listeners) changed()
    const after = await secure(server)
    expect([before, after].map(socket => socket.getPeerCertificate().subjectaltname)).to.deep.equal([
      'IP Address:127.0.0.1', 'IP Address:127.0.0.1, URI:urn:second',
    ])
    expect(await get(before)).to.match(/encrypted$/)
    expect(await get(after)).to.match(/encrypted$/)
    await server.close(1000)
    expect(listeners.size).to.equal(0)
  })

  it('speaks only the versions and ciphers of its context', async () => {
    const newest = await listen({ context: fixedTlsContext({ ...identity, minVersion: 'TLSv1.3' }) })
    expect(await attempt(newest, { maxVersion: 'TLSv1.2' })).to.equal('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION')
    expect(await attempt(newest, {})).to.match(/encrypted$/)
    const ciphers = 'ECDHE-ECDSA-AES256-GCM-SHA384'
    listener.revoke()
    const older = await listen({ context: fixedTlsContext({ ...identity, maxVersion: 'TLSv1.2', ciphers }) })
    const socket = await secure(older)
    expect([socket.getProtocol(), socket.getCipher().name]).to.deep.equal(['TLSv1.2', ciphers])
    expect(await attempt(older, { ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' })).to.equal(
      'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE',
    )
    expect(await attempt(older, { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' })).to
      .equal('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION')
    socket.destroy()
  })

  it('uses only the curves and signature algorithms of its context', async () => {
    const curves = await listen({ context: fixedTlsContext({ ...identity, ecdhCurve: 'P-384:P-521' }) })
    const socket = await secure(curves)
    expect(socket.getEphemeralKeyInfo()).to.include({ name: 'secp384r1' })
    socket.destroy()
    expect(await attempt(curves, { ecdhCurve: 'P-256' })).to.equal('ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE')
    listener.revoke()
    const algorithms = await listen({ context: fixedTlsContext({ ...identity, sigalgs: 'ecdsa_secp256r1_sha256' }) })
    expect(await attempt(algorithms, { sigalgs: 'RSA-PSS+SHA256' })).to.equal('ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE')
    expect(await attempt(algorithms, {})).to.match(/encrypted$/)
  })

  it('refuses a second handshake on a connection', async () => {
    const server = await listen({ context: fixedTlsContext({ ...identity, maxVersion: 'TLSv1.2' }) })
    const socket = await secure(server)
    const outcome = await new Promise<string>(resolve => {
      const end = (error: NodeJS.ErrnoException | null): void => resolve(error?.code ?? 'another handshake')
      socket.on('error', end)
      socket.renegotiate({}, end)
    })
    expect(outcome).to.equal('ERR_SSL_NO_RENEGOTIATION')
  })

  it('accepts client certificates of its authorities only, and requires them if so configured', async () => {
    const { key, cert } = authority.issue({ hosts: ['client.example.org'] })
    const stranger = testAuthority('stranger').identity
    const clients = [{}, { key, cert }, { key: stranger.key, cert: stranger.cert }]
    const served = async (clientCertificates: HttpsOptions['clientCertificates']): Promise<boolean[]> => {
      const server = await listen({ clientCertificates })
      const answers: boolean[] = []
      for (const client of clients) answers.push((await attempt(server, client)).endsWith('encrypted'))
      listener.revoke()
      return answers
    }
    expect(await served('ignored')).to.deep.equal([true, true, true])
    expect(await served('optional')).to.deep.equal([true, true, false])
    expect(await served('required')).to.deep.equal([false, true, false])
  })

  it('bounds the connections that never end their TLS handshake', async () => {
    const server = await listen({}, { connectionsMax: 40 })
    const silent: Socket[] = []
    for (let i = 0; i < 30; i++) {
      const socket = connect(server.address)
      socket.on('error', () => {})
      await once(socket, 'connect')
      silent.push(socket)
    }
    await Promise.all(silent.slice(0, 20).map(socket => socket.closed || once(socket.resume(), 'close')))
    const open = silent.filter(socket => !socket.destroyed)
    expect(open).to.have.lengthOf(10)
    for (let i = 0; i < 15; i++) expect(await get(await secure(server))).to.match(/encrypted$/)
    for (const socket of open) socket.destroy()
    await server.close(0)
  })

  it('does not wait for TLS handshakes when it closes', async () => {
    const server = await listen()
    const silent = connect(server.address)
    await once(silent, 'connect')
    // The server has accepted this connection after the silent one.
    const accepted = await secure(server)
    const closed = once(silent.resume(), 'close')
    await server.close(10_000)
    await closed
    accepted.destroy()
  })
})
