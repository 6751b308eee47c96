import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { freePorts } from '../src/free-ports.ts'
import { HttpClient } from '../src/http-client.ts'
import { TestCluster, eventually } from '../src/test-cluster.ts'
import { administrator } from '../src/test-node.ts'

const script = fileURLToPath(new URL('../../scripts/make-certificates', import.meta.url))
const numbers = [1, 2, 3]
const nodeName = (number: number): string => `node${number}@127.0.0.1`
/** Longer than nodes need to read replaced files and to notice that a link is silent. */
const noticedMsMax = 20_000

/** A folder that scripts/make-certificates has filled. */
class Authority {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
    execFileSync(script, ['--out', folder, '--nodes', numbers.map(nodeName).join()], { stdio: 'ignore' })
  }

  get certificate(): string {
    return readFileSync(join(this.#folder, 'authority.pem'), 'utf8')
  }

  /** Returns a file of a node. */
  text(number: number, name: string): string {
    return readFileSync(join(this.#folder, nodeName(number), name), 'utf8')
  }
}

describe('a cluster with TLS', () => {
  let folder: string
  let cluster: TestCluster
  let ports: number[]
  const clients: HttpClient[] = []
  beforeEach(() => { folder = mkdtempSync(join(tmpdir(), 'sectional-tls-')) })
  afterEach(async function () {
    for (const client of clients.splice(0)) client.close()
    await cluster.close(this.currentTest?.state === 'failed')
    rmSync(folder, { recursive: true })
  })

  const installed = (number: number, name: string): string => join(folder, `installed${number}`, name)

  /** Replaces a file of a node as a tool does that renews certificates. */
  function install(number: number, name: string, text: string): void {
    writeFileSync(installed(number, `${name}.new`), text)
    renameSync(installed(number, `${name}.new`), installed(number, name))
  }

  function settings(number: number): Record<string, string> {
    return {
      'cluster/tls_key_file': installed(number, 'key.pem'),
      'cluster/tls_cert_file': installed(number, 'certificate.pem'),
      'cluster/tls_ca_file': installed(number, 'authority.pem'),
      'ssl/enable': 'true',
      'ssl/port': String(ports[number - 1]),
      'ssl/key_file': installed(number, 'key.pem'),
      'ssl/cert_file': installed(number, 'certificate.pem'),
    }
  }

  function client(number: number, ...authorities: readonly Authority[]): HttpClient {
    const trusted = authorities.map(({ certificate }) => certificate)
    const made = new HttpClient(ports[number - 1]!, administrator, { authorities: trusted })
    clients.push(made)
    return made
  }

  /** Returns the certificate that a listener shows to a new connection. */
  function shownAt(port: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
        resolve(String(socket.getPeerX509Certificate()))
        socket.destroy()
      })
      socket.on('error', reject)
    })
  }

  /** Waits until a node shows this certificate to clients and to other nodes. */
  async function shows(number: number, certificate: string): Promise<void> {
    const linkPort = Number(cluster.node(number).seed.split(':')[1])
    for (const port of [ports[number - 1]!, linkPort]) {
      await eventually('the certificate', noticedMsMax, async () => expect(await shownAt(port)).to.equal(certificate))
    }
  }

  async function linked(number: number): Promise<number> {
    return (await cluster.node(number).http.send('GET', '/_membership')).body.all_nodes.length
  }

  async function reload(): Promise<void> {
    for (const number of numbers) {
      const { status } = await cluster.node(number).http.send('POST', '/_node/_local/_config/_reload', { json: {} })
      expect(status).to.equal(200)
    }
  }

  it('takes a new authority and new certificates while clients write, and loses no write', async () => {
    const old = new Authority(join(folder, 'old'))
    const next = new Authority(join(folder, 'next'))
    ports = await freePorts(3)
    for (const number of numbers) {
      mkdirSync(join(folder, `installed${number}`))
      for (const name of ['key.pem', 'certificate.pem', 'authority.pem']) install(number, name, old.text(number, name))
    }
    cluster = await TestCluster.start({
      nodes: 3, nodeSettings: Object.fromEntries(numbers.map(number => [number, settings(number)])),
    })
    for (const number of numbers) await shows(number, old.text(number, 'certificate.pem'))
    const both = numbers.map(number => client(number, old, next))
    expect((await both[0]!.send('PUT', '/places?q=2')).headers['location']).to.equal(
      `https://127.0.0.1:${ports[0]}/places`,
    )

    const acknowledged: string[] = []
    let stopped = false
    const write = async (label: string): Promise<void> => {
      for (let index = 0; !stopped; index++) {
        const id = `${label}${index}`
        const { status } = await both[index % 3]!.send('PUT', `/places/${id}`, { json: { index } })
        if (status === 201) acknowledged.push(id)
      }
    }
    const writers = ['a', 'b'].map(write)

    // First, every node trusts both authorities.
    for (const number of numbers) install(number, 'authority.pem', old.certificate + next.certificate)
    await reload()
    // Then they show the certificates of the new one. They find these files by themselves.
    for (const number of numbers) {
      for (const name of ['certificate.pem', 'key.pem']) install(number, name, next.text(number, name))
    }
    for (const number of numbers) await shows(number, next.text(number, 'certificate.pem'))
    // At last, they no longer trust the old one.
    for (const number of numbers) install(number, 'authority.pem', next.certificate)
    await reload()

    // Links that open from now on need the new certificates at both ends.
    cluster.partition([1], [2], [3])
    for (const number of numbers) {
      await eventually('the links to close', noticedMsMax, async () => expect(await linked(number)).to.equal(1))
    }
    cluster.heal()
    for (const number of numbers) {
      await eventually('the links to open', noticedMsMax, async () => expect(await linked(number)).to.equal(3))
    }
    const before = acknowledged.length
    await eventually('further writes', noticedMsMax, async () => expect(acknowledged.length).to.be.above(before + 20))
    stopped = true
    await Promise.all(writers)

    const trusting = numbers.map(number => client(number, next))
    for (const [index, id] of acknowledged.entries()) {
      expect((await trusting[index % 3]!.send('GET', `/places/${id}?r=3`)).status, id).to.equal(200)
    }
    const refused = await client(1, old).send('GET', '/').then(() => 'answered', (error: Error) => error.message)
    expect(refused).to.match(/certificate/)
    for (const node of cluster.nodes) expect(node.log()).not.to.match(/cannot be used/)
  })
})
