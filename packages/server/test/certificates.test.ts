import { createPrivateKey } from 'node:crypto'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { ManualClock, MemoryLog, PrometheusMetrics, WebSocketNetwork, fixedTlsContext } from '@sectional/runtime'
import { testAuthority, type TestIdentity } from '@sectional/runtime/test-certificates'
import { readCertificates, type Certificates } from '../src/command-line/certificates.ts'
import { StartError } from '../src/command-line/flags.ts'
import { ConfigurationError, LiveConfiguration } from '../src/index.ts'
import { nodeOptions } from '../src/configuration/node-options.ts'

const password = 'a password of a key'
const authority = testAuthority('one')
const { identity } = authority
const pollMs = 2000
const minuteMs = 60_000
const startMs = Date.UTC(2026, 0, 1)

/** Returns the certificates in a text. */
function pems(text: string): readonly string[] {
  return text.split(/(?<=-----END CERTIFICATE-----\n)/)
}

/** Returns an authority as the identity of a node. */
function selfSigned(): TestIdentity {
  const { key, cert } = testAuthority('self').root
  return { key, cert, ca: cert }
}

/** Whether two nodes can connect to each other, whichever of them dials. */
async function areLinked(...identities: readonly [TestIdentity, TestIdentity]): Promise<boolean> {
  const networks = identities.map(tls => new WebSocketNetwork({ tls: fixedTlsContext(tls) }))
  try {
    for (const [from, to] of [networks, networks.toReversed()] as [WebSocketNetwork, WebSocketNetwork][]) {
      const accepted = Promise.withResolvers<void>()
      const { address } = await to.listen({ host: '127.0.0.1', port: 0 }, () => accepted.resolve())
      await from.connect(address, { timeoutMs: 5000 })
      await accepted.promise
    }
    return true
  } catch {
    return false
  } finally {
    for (const network of networks) network.revoke()
  }
}

describe('certificates', () => {
  let folder: string
  let ini: string
  let configuration: LiveConfiguration
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'certificates-'))
    put('text.pem', 'no certificate')
    put('other-key.pem', testAuthority('two').identity.key)
    put('locked-key.pem', createPrivateKey(identity.key).export({
      type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: password,
    }) as string)
  })
  beforeEach(() => { for (const part of ['key', 'cert', 'ca'] as const) put(`${part}.pem`, identity[part]) })
  after(() => rmSync(folder, { recursive: true }))

  /** Replaces a file as tools do that renew certificates. */
  function put(name: string, text: string): void {
    const path = join(folder, name)
    writeFileSync(`${path}.new`, text)
    renameSync(`${path}.new`, path)
  }

  async function read(text: string): Promise<Certificates> {
    ini = text
    const files = { read: async () => [{ name: 'local.ini', text: ini }], write: async () => {} }
    configuration = await LiveConfiguration.load(files, {})
    nodeOptions(configuration.settings())
    return readCertificates(configuration, folder, startMs)
  }

  async function refusal(text: string): Promise<string> {
    try {
      await read(text)
      return 'none'
    } catch (error) {
      if (!(error instanceof ConfigurationError)) expect(error).to.be.instanceOf(StartError)
      return (error as Error).message
    }
  }

  const links = '[cluster]\ntls_key_file = key.pem\ntls_cert_file = ./cert.pem\ntls_ca_file = ca.pem\n'
  const https = '[ssl]\nenable = true\nkey_file = key.pem\ncert_file = cert.pem\n'

  it('are read from the folder of the configuration, and are not required by default', async () => {
    const none = await read('')
    expect([none.links, none.https]).to.deep.equal([undefined, undefined])
    const both = await read(links + https)
    expect(both.links?.current).to.deep.equal({ ...identity, minVersion: 'TLSv1.3' })
    expect(both.https?.clientCertificates).to.equal('ignored')
    expect(both.https?.context.current).to.deep.equal({
      key: identity.key, cert: identity.cert, minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3',
    })
  })

  it('of the links are refused with the name of the option and the problem', async () => {
    expect(await refusal('[cluster]\ntls_key_file = key.pem\n')).to.equal(
      '[cluster] tls_cert_file and tls_ca_file is empty: TLS between nodes needs '
        + 'tls_key_file, tls_cert_file, tls_ca_file; set all or none',
    )
    expect(await refusal(links.replace('./cert.pem', 'absent.pem'))).to.match(
      /^\[cluster\] tls_cert_file = "absent.pem": .*no such file/,
    )
    expect(await refusal(links.replace('ca.pem', 'text.pem'))).to.match(/^\[cluster\] tls_ca_file = "text.pem": /)
    expect(await refusal(links.replace('key.pem', 'other-key.pem'))).to.equal(
      '[cluster] tls_key_file = "other-key.pem" is not the key of the certificate in '
        + '[cluster] tls_cert_file = "./cert.pem"',
    )
  })

  describe('of the links', () => {
    const useless: Record<string, [Parameters<typeof authority.issue>[0], RegExp]> = {
      'the name of another node': [
        { addresses: ['127.0.0.1'], uris: ['sectional:node2@127.0.0.1'] },
        /the certificate of node1@127\.0\.0\.1 must name URI:sectional:node1@127\.0\.0\.1, it names .*node2@127/,
      ],
      'the host of another node': [{ addresses: ['127.0.0.2'] }, /must name IP Address:127\.0\.0\.1, it names IP Ad/],
      'a time that is over': [{ notAfter: '20251231235959' }, /has expired: it was valid until 2025-12-31T23:59:59/],
      'one end of connections only': [{ usages: ['serverAuth'] }, /extended key usage lacks clientAuth, and a node/],
    }
    for (const [what, [content, reason]] of Object.entries(useless)) {
      it(`are refused with ${what}, as other nodes would`, async () => {
        const { key, cert } = authority.issue(content)
        put('key.pem', key)
        put('cert.pem', cert)
        expect(await refusal(links)).to.match(reason).and.include('[cluster] tls_cert_file = "./cert.pem"')
      })
    }

    it('are refused when no authority of tls_ca_file has signed them', async () => {
      put('ca.pem', testAuthority('two').identity.ca)
      expect(await refusal(links)).to.match(
        /^Other nodes would refuse .*cert\.pem": no authority in \[cluster\] tls_ca_file = "ca\.pem" has signed it\./,
      )
      put('ca.pem', testAuthority('two').identity.ca + identity.ca)
      expect(await refusal(links)).to.equal('none')
    })

    it('are refused exactly when a handshake with another node fails', async () => {
      const [between, stranger] = [authority.intermediate('between'), testAuthority('two')]
      const [leaf, signer] = pems(between.identity.cert) as [string, string]
      const namesake = stranger.intermediate('two')
      const self = selfSigned()
      const cases: Record<string, Partial<TestIdentity>> = {
        'a certificate of the authority': {},
        'with its intermediate authority': between.identity,
        'with its intermediate authority in the other file': {
          ...between.identity, cert: leaf, ca: identity.ca + signer,
        },
        'without its intermediate authority': { ...between.identity, cert: leaf },
        'with an intermediate authority, but not the first one': { ...between.identity, ca: signer },
        'with other certificates before that of its authority': {
          ...between.identity, cert: leaf + pems(stranger.intermediate('x').identity.cert)[1] + signer,
        },
        'of another authority': { ...stranger.identity, ca: identity.ca },
        'of another authority with the same name': {
          ...namesake.identity, cert: pems(namesake.identity.cert)[0]!, ca: stranger.identity.ca,
        },
        'among several authorities': { ca: stranger.identity.ca + identity.ca },
        'with itself as authority': self,
        'that nobody has signed': { ...self, ca: identity.ca },
        'for servers': authority.issue({ addresses: ['127.0.0.1'], usages: ['serverAuth'] }),
        'for clients': authority.issue({ addresses: ['127.0.0.1'], usages: ['clientAuth'] }),
        'for both': authority.issue({ addresses: ['127.0.0.1'], usages: ['clientAuth', 'serverAuth'] }),
        'of the past': authority.issue({ notAfter: '20251231000000' }),
      }
      for (const [name, change] of Object.entries(cases)) {
        const { key, cert, ca } = { ...identity, ...change }
        put('key.pem', key)
        put('cert.pem', cert)
        put('ca.pem', ca)
        const accepted = await refusal(links) === 'none'
        expect([name, accepted]).to.deep.equal([name, await areLinked({ key, cert, ca }, { key, cert, ca })])
      }
    })

    it('may be signed by an intermediate authority, whose certificate they must contain', async () => {
      const { key, cert } = authority.intermediate('between').intermediate('nearest').identity
      put('key.pem', key)
      put('cert.pem', cert)
      expect(await refusal(links)).to.equal('none')
      put('cert.pem', cert.slice(0, cert.indexOf('-----END')) + '-----END CERTIFICATE-----\n')
      expect(await refusal(links)).to.match(/no authority in .* has signed it/)
    })
  })

  it('of HTTPS are refused with the name of the option and the problem', async () => {
    expect(await refusal('[ssl]\nenable = true\n')).to.equal(
      '[ssl] cert_file is empty: HTTPS needs a certificate and its key',
    )
    expect(await refusal(https.replace('key.pem', 'absent.pem'))).to.match(
      /^\[ssl\] key_file = "absent.pem": .*no such file/,
    )
    expect(await refusal(https.replace('cert.pem', 'text.pem'))).to.match(/^\[ssl\] cert_file = "text.pem": /)
    expect(await refusal(https.replace('key.pem', 'other-key.pem'))).to.equal(
      '[ssl] key_file = "other-key.pem" is not the key of the certificate in [ssl] cert_file = "cert.pem"',
    )
    expect(await refusal(`${https}verify_ssl_certificates = true\n`)).to.equal(
      '[ssl] cacert_file is empty: without it, no certificate of a client can be verified',
    )
    expect(await refusal(`${https}fail_if_no_peer_cert = true\n`)).to.equal(
      '[ssl] fail_if_no_peer_cert = true: [ssl] verify_ssl_certificates must be true too',
    )
    expect(await refusal(`${https}ciphers = NO-SUCH-CIPHER\n`)).to.match(
      /^\[ssl\] ciphers = "NO-SUCH-CIPHER" cannot be used: /,
    )
    expect(await refusal(`${https}ecc_curves = P-256:P-1\n`)).to.match(
      /^\[ssl\] ecc_curves = "P-256:P-1" cannot be used: /,
    )
    expect(await refusal(`${https}signature_algs = ecdsa\n`)).to.match(
      /^\[ssl\] signature_algs = "ecdsa" cannot be used: /,
    )
    expect(await refusal(`${https}tls_versions = tlsv1.1, tlsv1.2\n`)).to.match(
      /^\[ssl\] tls_versions = "tlsv1.1, tlsv1.2": tlsv1.1 is outdated \(RFC 8996\) and not spoken; only tlsv1.2 and/,
    )
  })

  it('may have an encrypted key, whose password no message shows', async () => {
    const locked = https.replace('key.pem', 'locked-key.pem')
    const certificates = await read(`${locked}password = ${password}\n`)
    expect(certificates.https?.context.current.key).to.equal(identity.key)
    expect(configuration.isSecret('ssl', 'password')).to.equal(true)
    expect(configuration.isSecret('cluster', 'tls_key_password')).to.equal(true)
    expect(await refusal(locked)).to.equal(
      '[ssl] key_file = "locked-key.pem" is encrypted: [ssl] password is empty',
    )
    expect(await refusal(`${locked}password = a wrong one\n`)).to.equal(
      '[ssl] key_file = "locked-key.pem" cannot be decrypted: [ssl] password is not its password',
    )
  })

  it('take lists in the form of CouchDB', async () => {
    const { https: lists } = await read(`${https}tls_versions = ['tlsv1.2']\n`
      + 'ciphers = ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"]\n'
      + "ecc_curves = [x25519, 'secp256r1']\nsignature_algs = [{sha512, ecdsa}, {sha256, rsa}]\n"
      + 'verify_ssl_certificates = true\nfail_if_no_peer_cert = true\ncacert_file = ca.pem\n')
    expect(lists?.clientCertificates).to.equal('required')
    const { key: _key, cert: _cert, ...settings } = lists!.context.current
    expect(settings).to.deep.equal({
      minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2', ca: identity.ca,
      ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384', ecdhCurve: 'x25519:secp256r1',
      sigalgs: 'ECDSA+SHA512:RSA+SHA256',
    })
    const { https: algorithms } = await read(`${https}signature_algs = [ecdsa_secp256r1_sha256, ed25519]\n`)
    expect(algorithms?.context.current.sigalgs).to.equal('ecdsa_secp256r1_sha256:ed25519')
  })

  describe('while the node runs', () => {
    let clock: ManualClock
    let log: MemoryLog
    let certificates: Certificates
    let metrics: PrometheusMetrics
    let changes: number
    let stop: () => void
    const second = authority.issue({ addresses: ['127.0.0.1'], uris: ['urn:second'] })

    async function watch(text: string): Promise<void> {
      clock = new ManualClock(startMs)
      log = new MemoryLog()
      certificates = await read(text)
      changes = 0
      certificates.https?.context.onChange(() => { changes++ })
      metrics = new PrometheusMetrics()
      stop = certificates.watch({ clock, log, metrics, onChange: listener => configuration.onChange(listener) })
    }
    afterEach(() => stop())

    const shown = (): string | undefined => certificates.https?.context.current.cert
    const messages = (): string[] => log.lines.map(entry => entry.message)

    it('are read again when both files have changed, one after the other', async () => {
      await watch(https)
      put('cert.pem', second.cert)
      await clock.advance(pollMs)
      expect(shown()).to.equal(identity.cert)
      put('key.pem', second.key)
      await clock.advance(pollMs)
      await clock.advance(pollMs)
      expect(shown()).to.equal(second.cert)
      expect(changes).to.equal(1)
      expect(messages()).to.deep.equal(['a certificate was replaced'])
    })

    it('are read again at once when the configuration is read again', async () => {
      await watch(https)
      put('cert.pem', second.cert)
      put('key.pem', second.key)
      put('moved-key.pem', second.key)
      ini = https.replace('= key.pem', '= moved-key.pem')
      await configuration.reload()
      expect(shown()).to.equal(second.cert)
      await clock.advance(pollMs)
      await clock.advance(pollMs)
      expect(changes).to.equal(1)
    })

    it('stay in use when the new files cannot be used, which is logged once', async () => {
      await watch(https + links)
      put('key.pem', testAuthority('two').identity.key)
      for (let i = 0; i < 5; i++) await clock.advance(pollMs)
      expect(shown()).to.equal(identity.cert)
      expect(certificates.links?.current.cert).to.equal(identity.cert)
      expect(changes).to.equal(0)
      const expected = 'new files or settings of a certificate cannot be used; the previous ones stay in use'
      expect(messages()).to.deep.equal([expected, expected])
      expect(log.lines.map(({ level, fields }) => [level, fields['use']])).to.deep.equal([
        ['error', 'links between nodes'], ['error', 'HTTPS'],
      ])
      expect(log.lines[1]!.fields['reason']).to.match(/key_file = "key.pem" is not the key of the certificate/)
      put('key.pem', identity.key)
      for (let i = 0; i < 2; i++) await clock.advance(pollMs)
      expect(messages()).to.have.lengthOf(2)
    })

    it('are read again after a while when they could not be used', async () => {
      const { key, cert } = authority.issue({ notBefore: '20260101000100' })
      await watch(https + links)
      put('cert.pem', cert)
      put('key.pem', key)
      for (let i = 0; i < 5; i++) await clock.advance(pollMs)
      expect(shown()).to.equal(identity.cert)
      expect(messages()).to.have.lengthOf(2)
      expect(log.lines[1]!.fields['reason']).to.equal('[ssl] cert_file = "cert.pem", or the certificate of an '
        + 'authority that signed it, is not valid before 2026-01-01T00:01:00.000Z: replace it, or check the clock of '
        + 'this machine')
      expect(await metrics.render()).to.include('sectional_certificate_refused{use="HTTPS"} 1')
      for (let i = 0; i < 2; i++) await clock.advance(minuteMs)
      expect(shown()).to.equal(cert)
      expect(certificates.links?.current.cert).to.equal(cert)
      expect(messages().slice(2)).to.deep.equal(['a certificate was replaced', 'a certificate was replaced'])
      expect(await metrics.render()).to.include('sectional_certificate_refused{use="HTTPS"} 0')
        .and.include(`sectional_certificate_expiry_seconds{use="links between nodes"} ${Date.UTC(2100, 0) / 1000}`)
    })

    it('of the links stay in use when other nodes would refuse the new ones', async () => {
      await watch(links.replace('[cluster]', '[cluster]\nadvertised_address = 127.0.0.1:15984'))
      const useless = [
        { addresses: ['127.0.0.1'], uris: ['sectional:node2@127.0.0.1'] },
        { uris: ['sectional:node1@127.0.0.1'], addresses: ['127.0.0.2'] },
        { notAfter: '20251231235959' },
        { notBefore: '20270101000000' },
      ]
      for (const content of useless) {
        const { key, cert } = authority.issue(content)
        put('cert.pem', cert)
        put('key.pem', key)
        for (let i = 0; i < 2; i++) await clock.advance(pollMs)
        expect(certificates.links?.current.cert).to.equal(identity.cert)
      }
      expect(log.lines.map(({ fields }) => String(fields['reason']))).to.satisfy((reasons: string[]) =>
        [/must name URI/, /it does not name 127\.0\.0\.1, the host of \[cluster\] advertised_address/, /has expired/,
          /is not valid before/].every((expected, at) => expected.test(reasons[at]!)))
      expect(log.lines).to.have.lengthOf(useless.length)
    })

    it('of HTTPS that have expired replace only those that have expired too', async () => {
      const expired = ['20251230000000', '20251231000000'].map(notAfter => authority.issue({ notAfter }))
      const install = async ({ key, cert }: { key: string; cert: string }): Promise<void> => {
        put('cert.pem', cert)
        put('key.pem', key)
        for (let i = 0; i < 2; i++) await clock?.advance(pollMs)
      }
      put('cert.pem', expired[0]!.cert)
      put('key.pem', expired[0]!.key)
      await watch(https)
      expect(log.lines.map(({ level, message }) => [level, message])).to.deep.equal([
        ['error', 'the certificate in use is refused by others'],
      ])
      for (const next of [expired[1]!, second]) {
        await install(next)
        expect(shown()).to.equal(next.cert)
      }
      await install(expired[0]!)
      expect(shown()).to.equal(second.cert)
      expect(log.lines.at(-1)!.fields['reason']).to.match(/cert_file = "cert.pem", .* has expired/)
    })

    it('cause a warning when they expire soon, and an error when they have expired', async () => {
      const brief = authority.issue({ notAfter: '20260101000005' })
      put('cert.pem', brief.cert)
      put('key.pem', brief.key)
      await watch(https)
      expect(messages()).to.deep.equal(['a certificate expires soon'])
      await clock.advance(60_000)
      expect(messages()).to.deep.equal(['a certificate expires soon', 'the certificate in use is refused by others'])
      expect(log.lines[1]!.fields['validTo']).to.equal('2026-01-01T00:00:05.000Z')
    })
  })
})
