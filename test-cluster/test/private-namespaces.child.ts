/** Runs in namespaces of its own, for private-namespaces.test.ts. Prints what it has observed as JSON. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { NamespaceNetwork } from '../src/namespace-network.ts'
import { SmallDisk } from '../src/small-disk.ts'

/** Prints the datagrams that it receives; sends those that it reads. */
const talker = `
  const socket = require('node:dgram').createSocket('udp4')
  socket.on('message', text => console.log(String(text)))
  socket.bind(9000, () => console.log('ready'))
  require('node:readline').createInterface(process.stdin).on('line', line => {
    const [address, text] = line.split(' ')
    socket.send(text, 9000, address)
  })`

class Talker {
  readonly #child: ChildProcess
  readonly received: string[] = []
  #onLine: (() => void) | undefined

  constructor(launcher: readonly string[]) {
    const words = [...launcher, process.execPath, '-e', talker]
    this.#child = spawn(words[0]!, words.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] })
    createInterface(this.#child.stdout!).on('line', line => { this.received.push(line); this.#onLine?.() })
  }

  send(address: string, text: string): void {
    this.#child.stdin!.write(`${address} ${text}\n`)
  }

  async has(text: string): Promise<void> {
    while (!this.received.includes(text)) await new Promise<void>(resolve => { this.#onLine = resolve })
  }

  async end(): Promise<void> {
    this.#child.kill()
    await once(this.#child, 'exit')
  }
}

async function observePaths(): Promise<object> {
  const network = new NamespaceNetwork(2)
  await network.open()
  const [first, second] = network.places.map(({ launcher }) => new Talker(launcher)) as [Talker, Talker]
  const [toFirst, toSecond] = network.places.map(({ address }) => address) as [string, string]
  await first.has('ready')
  await second.has('ready')
  first.send(toSecond, 'open')
  await second.has('open')
  network.update((from, to) => !(from === 1 && to === 2))
  first.send(toSecond, 'lost')
  second.send(toFirst, 'back')
  await first.has('back')
  network.update(() => true)
  first.send(toSecond, 'healed')
  await second.has('healed')
  await first.end()
  await second.end()
  await network.close()
  return { first: first.received, second: second.received }
}

function observeDisk(): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), 'sectional-disk-'))
  const disk = new SmallDisk(folder)
  const outcomes: string[] = []
  const write = (bytes: number): void => {
    try {
      writeFileSync(join(folder, `file-${outcomes.length}`), Buffer.alloc(bytes))
      outcomes.push('written')
    } catch (error) {
      outcomes.push((error as NodeJS.ErrnoException).code!)
    }
  }
  write(1_000_000)
  disk.limit(65_536)
  write(32_768)
  write(65_536)
  disk.free()
  write(1_000_000)
  disk.unmount()
  rmSync(folder, { recursive: true })
  return outcomes
}

console.log(JSON.stringify({ paths: await observePaths(), disk: observeDisk() }))
