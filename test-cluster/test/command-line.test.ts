import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { freePortWith } from '../src/free-ports.ts'
import { HttpClient } from '../src/http-client.ts'
import { listenerProcess } from '../src/socket-owner.ts'
import { eventually } from '../src/test-cluster.ts'

const command = fileURLToPath(new URL('../../packages/server/dist/cli.js', import.meta.url))
const readyMsMax = 30_000

/** One run of `sectional` with its output so far. */
class CommandRun {
  readonly child: ChildProcess
  output = ''
  #ended: Promise<number | null>

  constructor(words: readonly string[]) {
    this.child = spawn(process.execPath, [command, ...words], { stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.child.stdout!, this.child.stderr!]) {
      stream.on('data', chunk => { this.output += String(chunk) })
    }
    this.#ended = once(this.child, 'close').then(([status]) => status as number | null)
  }

  async printed(pattern: RegExp): Promise<void> {
    await eventually(`${pattern} in the output`, readyMsMax, async () => {
      if (!pattern.test(this.output)) throw new Error(this.output)
    })
  }

  /** Resolves with the exit status. */
  ended(): Promise<number | null> {
    return this.#ended
  }

  async interrupt(): Promise<number | null> {
    this.child.kill('SIGINT')
    return this.#ended
  }
}

describe('sectional, the command', () => {
  let folder: string
  beforeEach(() => { folder = mkdtempSync(join(tmpdir(), 'sectional-command-')) })
  afterEach(() => rmSync(folder, { recursive: true }))

  /** Returns a port that is followed by free ones and has a free cluster port. */
  function freeRun(count: number): Promise<number> {
    return freePortWith(Array.from({ length: count }, (_, index) => [index, 10_000 + index]).flat().slice(1))
  }

  it('reports invalid flags', async () => {
    for (const [words, message] of [
      [['cluster', '--nodes', '2'], '--nodes 2: only 1, 3 and 5 are allowed'],
      [['node', '--fast'], "Unknown option '--fast'"],
      [['node'], '--config is missing'],
      [['fly'], 'unknown command "fly"'],
    ] as const) {
      const run = new CommandRun(words)
      expect(await run.ended()).to.equal(2)
      expect(run.output).to.contain(message)
    }
  })

  it('does not start a node without an administrator', async () => {
    writeFileSync(join(folder, 'local.ini'), '')
    const run = new CommandRun(['node', '--config', folder])
    expect(await run.ended()).to.equal(1)
    expect(run.output).to.contain('No administrator is configured')
  })

  it('names file and line of a wrong value', async () => {
    writeFileSync(join(folder, 'local.ini'), '; mine\n[cluster]\nq = 300\n')
    const run = new CommandRun(['node', '--config', folder])
    expect(await run.ended()).to.equal(1)
    expect(run.output).to.contain(`${join(folder, 'local.ini')} line 3: [cluster] q = "300": only an integer from 1 to`)
  })

  it('does not change a running cluster when its folder is started a second time with other flags', async () => {
    const port = await freeRun(1)
    const words = ['cluster', '--port', String(port), '--data', folder, '--admin', 'anna:pw']
    const running = new CommandRun([...words, '--nodes', '1'])
    await running.printed(/password: pw/)
    const client = new HttpClient(port, 'anna:pw')
    expect((await client.send('PUT', '/db/')).status).to.equal(201)
    expect((await client.send('PUT', '/db/kept', { json: { x: 1 } })).status).to.equal(201)
    const record = readFileSync(join(folder, 'cluster.json'), 'utf8')
    for (const more of [['--fresh'], ['--nodes', '5'], ['--admin', 'eve:x'], ['--fresh', '--port', String(port + 1)]]) {
      const second = new CommandRun(['cluster', '--data', folder, ...more])
      expect(await second.ended()).to.equal(1)
      expect(second.output).to.contain(`${folder} is in use by a running cluster`)
    }
    expect(readFileSync(join(folder, 'cluster.json'), 'utf8')).to.equal(record)
    expect((await client.send('GET', '/db/kept')).body.x).to.equal(1)
    client.close()
    expect(await running.interrupt()).to.equal(0)
  })

  it('does not start on a port in use', async () => {
    const port = await freeRun(1)
    const server = createServer().listen(port, '127.0.0.1')
    await once(server, 'listening')
    const run = new CommandRun(['cluster', '--nodes', '1', '--port', String(port), '--data', folder])
    expect(await run.ended()).to.equal(1)
    expect(run.output).to.contain(`Port ${port} on 127.0.0.1 is in use`)
    server.close()
  })

  it('runs a cluster that grows, starts a dead node again and keeps secrets to itself', async () => {
    const port = await freeRun(3)
    const words = ['cluster', '--port', String(port), '--data', folder, '--admin', 'anna:pa#ss;word']
    const first = new CommandRun([...words, '--nodes', '1'])
    await first.printed(/password: pa#ss;word/)
    const client = new HttpClient(port, 'anna:pa#ss;word')
    expect((await client.send('PUT', '/db/')).status).to.equal(201)
    expect((await client.send('PUT', '/db/kept', { json: { x: 1 } })).status).to.equal(201)
    expect(await first.interrupt()).to.equal(0)

    const second = new CommandRun([...words, '--nodes', '3'])
    await second.printed(/node3@127.0.0.1 +http/)
    const third = new HttpClient(port + 2, 'anna:pa#ss;word')
    // Each node reports to be up by itself; the newest learns a moment later that the others were admitted.
    await eventually(
      'node3 to know all members', readyMsMax,
      async () => expect((await third.send('GET', '/_membership')).body.cluster_nodes).to.have.length(3),
    )
    await eventually(
      'node3 to read what node1 kept', readyMsMax,
      async () => expect((await third.send('GET', '/db/kept')).body.x).to.equal(1),
    )
    expect(readFileSync(join(folder, 'node1/local.ini'), 'utf8')).not.to.contain('pa#ss')
    for (const name of ['cluster.json', 'node1/cluster.ini', 'node1/local.ini']) {
      expect(statSync(join(folder, name)).mode & 0o077).to.equal(0)
    }

    const { body } = await third.send('GET', '/_node/_local/_system')
    expect(body.uptime).to.be.a('number')
    process.kill(listenerProcess(port + 2), 'SIGKILL')
    await second.printed(/node3@127.0.0.1 ended with SIGKILL; it is started again in 1 s/)
    await eventually(
      'node3 to be up again', readyMsMax, async () => expect((await third.send('GET', '/_up')).status).to.equal(200),
    )
    expect(await second.interrupt()).to.equal(0)
    for (const open of [client, third]) open.close()
  })

  it('keeps its data from other accounts of the machine, also in folders that were open to them', async () => {
    const port = await freeRun(1)
    const words = ['cluster', '--nodes', '1', '--port', String(port), '--data', folder, '--admin', 'anna:secret']
    const data = join(folder, 'node1', 'data')
    const client = new HttpClient(port, 'anna:secret')
    const before = process.umask(0o022)
    try {
      for (const path of ['/first', '/second']) {
        const run = new CommandRun(words)
        await run.printed(/password: secret/)
        expect((await client.send('PUT', path)).status).to.equal(201)
        expect(await run.interrupt()).to.equal(0)
        for (const entry of readdirSync(data, { recursive: true, encoding: 'utf8' })) {
          expect(statSync(join(data, entry)).mode & 0o077, entry).to.equal(0)
        }
        for (const name of ['', 'stores', 'blobs']) chmodSync(join(data, name), 0o755)
      }
    } finally {
      process.umask(before)
      client.close()
    }
  })

  it('turns on TLS for a cluster that has data', async () => {
    const port = await freePortWith([1, 2, 1000, 1001, 1002, 10_000, 10_001, 10_002])
    const words = ['cluster', '--port', String(port), '--data', folder, '--admin', 'anna:secret']
    const first = new CommandRun(words)
    await first.printed(/Administrator/)
    const plain = new HttpClient(port, 'anna:secret')
    await eventually(
      'a database', readyMsMax, async () => expect((await plain.send('PUT', '/db/')).status).to.be.oneOf([201, 412]),
    )
    expect((await plain.send('PUT', '/db/kept', { json: { x: 1 } })).status).to.equal(201)
    plain.close()
    expect(await first.interrupt()).to.equal(0)

    const second = new CommandRun([...words, '--tls'])
    await second.printed(new RegExp(`node3@127.0.0.1 .*https://127.0.0.1:${port + 1002}`))
    const authority = /--cacert\): (.*)$/m.exec(second.output)![1]!
    const third = new HttpClient(port + 1002, 'anna:secret', {
      socketsMax: 1, authorities: [readFileSync(authority, 'utf8')],
    })
    await eventually('links with TLS', readyMsMax, async () => {
      expect((await third.send('GET', '/_membership')).body.all_nodes).to.have.length(3)
      expect((await third.send('GET', '/db/kept?r=3')).body.x).to.equal(1)
    })
    expect(readFileSync(join(folder, 'node3/node.log'), 'utf8')).to.match(/"tls":true/)
    third.close()
    expect(await second.interrupt()).to.equal(0)
  })
})
