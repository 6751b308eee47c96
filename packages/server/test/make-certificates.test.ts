import { spawnSync } from 'node:child_process'
import { X509Certificate, createPrivateKey } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const command = fileURLToPath(new URL('../../../scripts/certificates/command.mjs', import.meta.url))
const dayMs = 86_400_000

describe('scripts/make-certificates', () => {
  let folder: string
  let out: string
  before(function () {
    if (spawnSync('openssl', ['version']).status !== 0) this.skip()
  })
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'make-certificates-test-'))
    out = join(folder, 'out')
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  function make(
    words: readonly string[], env = process.env,
  ): { readonly status: number | null; readonly said: string } {
    const all = [command, '--out', out, ...words]
    const { status, stdout, stderr } = spawnSync(process.execPath, all, { encoding: 'utf8', env })
    return { status, said: stdout + stderr }
  }

  const text = (name: string): string => readFileSync(join(out, name), 'utf8')
  const certificate = (name: string): X509Certificate => new X509Certificate(text(name))

  it('makes an authority, and for each node a key and a certificate with its names', () => {
    const node2 = 'node2@db2.example.org'
    expect(make(['--nodes', `node1@127.0.0.1,${node2}=10.0.0.2+::1`, '--days', '30']).status).to.equal(0)
    const authority = certificate('authority.pem')
    expect(authority.ca).to.equal(true)
    expect(certificate('node1@127.0.0.1/certificate.pem').subjectAltName).to.equal(
      'URI:sectional:node1@127.0.0.1, IP Address:127.0.0.1',
    )
    const made = certificate(`${node2}/certificate.pem`)
    expect(made.subjectAltName).to.equal(
      `URI:sectional:${node2}, DNS:db2.example.org, IP Address:10.0.0.2, IP Address:0:0:0:0:0:0:0:1`,
    )
    expect([made.ca, made.verify(authority.publicKey), made.checkIssued(authority)]).to.deep.equal([false, true, true])
    expect(made.checkPrivateKey(createPrivateKey(text(`${node2}/key.pem`)))).to.equal(true)
    expect(made.validToDate.getTime() - made.validFromDate.getTime()).to.equal(30 * dayMs)
    expect(text(`${node2}/authority.pem`)).to.equal(text('authority.pem'))
    for (const name of ['authority-key.pem', `${node2}/key.pem`]) {
      expect(statSync(join(out, name)).mode & 0o777).to.equal(0o600)
    }
    expect(readdirSync(join(out, node2)).sort()).to.deep.equal(['authority.pem', 'certificate.pem', 'key.pem'])
  })

  it('adds nodes to an authority, and replaces nothing without --renew', () => {
    make(['--nodes', 'a@127.0.0.1'])
    const [authority, key] = [text('authority.pem'), text('a@127.0.0.1/key.pem')]
    const refused = make(['--nodes', 'b@127.0.0.1,a@127.0.0.1'])
    expect(refused.status).to.equal(1)
    expect(refused.said).to.match(/a@127\.0\.0\.1 exists already; nothing was changed/)
    expect(existsSync(join(out, 'b@127.0.0.1'))).to.equal(false)
    expect(make(['--nodes', 'b@127.0.0.1']).status).to.equal(0)
    expect(text('a@127.0.0.1/key.pem')).to.equal(key)
    expect(make(['--nodes', 'a@127.0.0.1', '--renew']).status).to.equal(0)
    expect(text('a@127.0.0.1/key.pem')).not.to.equal(key)
    expect(text('authority.pem')).to.equal(authority)
    for (const name of ['a', 'b']) {
      expect(certificate(`${name}@127.0.0.1/certificate.pem`).checkIssued(certificate('authority.pem'))).to.equal(true)
    }
    rmSync(join(out, 'authority-key.pem'))
    expect(make(['--nodes', 'c@127.0.0.1']).said).to.match(/the other file of the authority is missing/)
  })

  it('refuses wrong names and flags, and says that it needs openssl, before it makes anything', () => {
    for (const name of ['../a@127.0.0.1', 'a', 'a@', 'a@b/c', 'a@b$x', 'a@b=c,@', 'a@b=c\nd']) {
      const { status, said } = make(['--nodes', name])
      expect([status, said], name).to.satisfy(() => status === 1 && said.includes('are allowed'))
    }
    expect(make(['--nodes', 'a@b', '--days', '0']).said).to.match(/--days 0: only an integer from 1/)
    expect(make([]).said).to.match(/--nodes and --out are needed/)
    const absent = make(['--nodes', 'a@b'], { ...process.env, PATH: folder })
    expect(absent.status).to.equal(1)
    expect(absent.said).to.match(/^make-certificates: the command openssl is needed/)
    expect(existsSync(out)).to.equal(false)
  })
})
