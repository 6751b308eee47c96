import { spawnSync } from 'node:child_process'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import {
  existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { makeCertificate } from '../src/command-line/certificate-authority.ts'
import { apiOf, prepareCluster } from '../src/command-line/cluster-folder.ts'
import type { ClusterRequest } from '../src/command-line/cluster-record.ts'
import { StartError } from '../src/command-line/flags.ts'
import { folderProblem } from '../src/command-line/folder-problem.ts'

const plain: ClusterRequest = { nodes: 3, port: 7000, administrator: null, tls: false, fresh: false }
const allFree = async (): Promise<void> => {}
const allBusy = async (): Promise<void> => { throw new StartError('a port is in use') }

/** Returns every file below the folder with its content, except the files of the lock. */
function contents(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && !entry.parentPath.startsWith(join(folder, 'lock')))
  return Object.fromEntries(
    files.map(({ parentPath, name }) => [join(parentPath, name), readFileSync(join(parentPath, name), 'utf8')]),
  )
}

async function refusal(start: Promise<unknown>): Promise<string> {
  const error = await start.then(() => { throw new Error('the start was not refused') }, (reason: unknown) => reason)
  expect(error).to.be.instanceOf(StartError)
  return (error as StartError).message
}

describe('the data folder of a local cluster', () => {
  let top: string
  let folder: string
  beforeEach(() => {
    top = mkdtempSync(join(tmpdir(), 'sectional-folder-'))
    folder = join(top, 'data')
  })
  afterEach(() => rmSync(top, { recursive: true }))

  /** Prepares a cluster that has run once and has a data file. */
  async function kept(): Promise<Record<string, string>> {
    const { lock } = await prepareCluster(folder, plain, allFree)
    writeFileSync(join(folder, 'node1', 'document'), 'acknowledged')
    await lock.release()
    return contents(folder)
  }

  it('is not created when a port is in use', async () => {
    await refusal(prepareCluster(folder, plain, allBusy))
    expect(existsSync(folder)).to.equal(false)
  })

  for (const [what, request] of Object.entries({
    'removes data': { ...plain, fresh: true },
    'adds nodes': { ...plain, nodes: 5 },
    'replaces the administrator': { ...plain, administrator: { name: 'eve', password: 'x' } },
    'changes the ports': { ...plain, port: 8000 },
  })) {
    it(`stays as it is when a start that ${what} is refused because a port is in use`, async () => {
      const before = await kept()
      expect(await refusal(prepareCluster(folder, request, allBusy))).to.equal('a port is in use')
      expect(contents(folder)).to.deep.equal(before)
    })

    it(`stays as it is when a start that ${what} meets a cluster that runs`, async () => {
      await kept()
      const running = await prepareCluster(folder, plain, allFree)
      const before = contents(folder)
      expect(await refusal(prepareCluster(folder, request, allFree))).to.contain(
        `${folder} is in use by a running cluster`,
      )
      expect(contents(folder)).to.deep.equal(before)
      await running.lock.release()
    })
  }

  it('has the addresses of the API, which the own files of a node may have changed', async () => {
    const { nodes: [first, second], lock } = await prepareCluster(folder, plain, allFree)
    expect((await apiOf(first!, {})).http).to.deep.equal({ host: '127.0.0.1', port: 7000 })
    mkdirSync(join(second!.folder, 'local.d'))
    const changes = join(second!.folder, 'local.d', 'changed-over-http.ini')
    writeFileSync(changes, '[chttpd]\nport = 7100\nbind_address = any\n[ssl]\nbind_address = 10.0.0.1\n')
    const { http, https } = await apiOf(second!, { SECTIONAL_SSL__PORT: '7200' })
    expect([http, https]).to.deep.equal([{ host: '127.0.0.1', port: 7100 }, { host: '10.0.0.1', port: 7200 }])
    await lock.release()
  })

  it('is emptied by a fresh start, which checks the ports of the nodes that it removes too', async () => {
    await kept()
    const checked: number[] = []
    const { lock } = await prepareCluster(folder, { ...plain, port: 8000, fresh: true }, async ports => {
      checked.push(...ports)
    })
    await lock.release()
    expect(existsSync(join(folder, 'node1', 'document'))).to.equal(false)
    expect(checked).to.include.members([7000, 17000, 7002, 17002, 8000, 18000, 8002, 18002])
  })

  it('keeps its ports until others are given, which then determine the cluster ports too', async () => {
    await kept()
    const again = await prepareCluster(folder, { ...plain, nodes: null, port: null }, allFree)
    expect(again.nodes.map(node => [node.httpPort, node.clusterPort])).to.deep.equal([
      [7000, 17000], [7001, 17001], [7002, 17002],
    ])
    await again.lock.release()
    const moved = await prepareCluster(folder, { ...plain, nodes: null, port: 8000 }, allFree)
    expect(moved.nodes.map(node => [node.httpPort, node.clusterPort])).to.deep.equal([
      [8000, 18000], [8001, 18001], [8002, 18002],
    ])
    expect(readFileSync(join(folder, 'node3', 'cluster.ini'), 'utf8')).to.contain(
      'seedlist = 127.0.0.1:18000,127.0.0.1:18001,127.0.0.1:18002',
    )
    await moved.lock.release()
  })

  it('gets certificates with --tls, which later starts use again until a fresh start without it', async function () {
    if (spawnSync('openssl', ['version']).status !== 0) this.skip()
    const start = async (request: ClusterRequest): Promise<ReturnType<typeof prepareCluster>> => {
      const started = await prepareCluster(folder, request, allFree)
      await started.lock.release()
      return started
    }
    const first = await start({ ...plain, tls: true })
    expect(first.nodes.map(({ httpsPort }) => httpsPort)).to.deep.equal([8000, 8001, 8002])
    const authority = new X509Certificate(readFileSync(first.authority!))
    for (const { name, folder: own } of first.nodes) {
      const certificate = new X509Certificate(readFileSync(join(own, 'tls/certificate.pem')))
      expect(certificate.checkIssued(authority)).to.equal(true)
      expect(certificate.subjectAltName).to.equal(`URI:sectional:${name}, IP Address:127.0.0.1, DNS:localhost`)
      expect(statSync(join(own, 'tls/key.pem')).mode & 0o777).to.equal(0o600)
      expect(readFileSync(join(own, 'cluster.ini'), 'utf8')).to.match(/\[ssl\]\nenable = true\nport = 800/)
    }
    const made = contents(folder)
    const second = await start({ ...plain, nodes: null, port: null })
    expect(second.authority).to.equal(first.authority)
    expect(contents(folder)).to.deep.equal(made)
    const [own, other, third] = first.nodes.map(node => join(node.folder, 'tls')) as [string, string, string]
    const brief = makeCertificate(
      { key: readFileSync(join(folder, 'authority/authority-key.pem'), 'utf8'), certificate: String(authority) },
      { name: first.nodes[0]!.name, hosts: ['127.0.0.1'], days: 20 },
    )
    writeFileSync(join(own, 'key.pem'), brief.key)
    writeFileSync(join(own, 'certificate.pem'), brief.certificate)
    rmSync(join(other, 'key.pem'))
    await start({ ...plain, nodes: null, port: null })
    for (const renewed of [own, other]) {
      const certificate = new X509Certificate(readFileSync(join(renewed, 'certificate.pem')))
      expect(certificate.checkPrivateKey(createPrivateKey(readFileSync(join(renewed, 'key.pem'))))).to.equal(true)
      expect(certificate.validToDate.getTime()).to.be.above(Date.now() + 800 * 86_400_000)
    }
    expect(readFileSync(join(third, 'key.pem'), 'utf8')).to.equal(made[join(third, 'key.pem')])
    const fresh = await start({ ...plain, fresh: true })
    expect(fresh.authority).to.equal(null)
    expect(Object.keys(contents(folder)).filter(path => path.endsWith('.pem'))).to.deep.equal([])
  })

  it('names the path, the cause and a remedy when the file system refuses', () => {
    const denied = Object.assign(new Error('EACCES: permission denied, mkdir'), {
      code: 'EACCES', path: '/srv/data/node1',
    })
    expect(folderProblem(denied, '/srv/data cannot be prepared').message).to.equal(
      '/srv/data cannot be prepared (/srv/data/node1): permission denied; '
        + 'give the user that runs this command access to it, or name another folder',
    )
    const unknown = Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
    expect(folderProblem(unknown, '/srv/data cannot be read').message).to.equal(
      '/srv/data cannot be read: EIO: i/o error',
    )
  })

  it('is refused with the problem in one line', async () => {
    mkdirSync(folder)
    writeFileSync(join(folder, 'thesis.txt'), '')
    expect(await refusal(prepareCluster(folder, plain, allFree))).to.contain(`${folder} contains other files`)
    rmSync(join(folder, 'thesis.txt'))
    const administrator = { name: 'admin', password: 'secret' }
    const whole = { nodes: 3, port: 7000, clusterPort: 17_000, secret: 'x', administrator }
    const impossible = [{ nodes: -3 }, { nodes: 1e9 }, { port: 'x' }, { clusterPort: 9e4 }, { secret: '' }]
    const damaged = impossible.map(change => JSON.stringify({ ...whole, ...change }))
    for (const text of ['{"nodes": 3,', '{}', 'null', '[]', ...damaged]) {
      writeFileSync(join(folder, 'cluster.json'), text)
      const message = await refusal(prepareCluster(folder, plain, allFree))
      expect(message, text).to.match(/cluster\.json is damaged: .*Restore the file from a copy.*remove the folder/)
      expect(message.split('\n')).to.have.length(1)
      // The advice of the message must work: a fresh start is refused too, since the ports of the nodes are not known.
      expect(await refusal(prepareCluster(folder, { ...plain, fresh: true }, allFree))).to.equal(message)
    }
    writeFileSync(join(folder, 'cluster.json'), JSON.stringify(whole))
    await (await prepareCluster(folder, plain, allFree)).lock.release()
    rmSync(join(folder, 'cluster.json'))
    mkdirSync(join(folder, 'cluster.json'))
    expect(await refusal(prepareCluster(folder, plain, allFree))).to.match(
      /cluster\.json cannot be read: it is a folder, not a file/,
    )
    expect(await refusal(prepareCluster('/proc/sectional/data', plain, allFree))).to.match(
      /^\/proc\/sectional\/data cannot be created: a part of the path does not exist/,
    )
  })
})
