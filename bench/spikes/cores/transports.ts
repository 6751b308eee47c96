/**
 * Spike of docs/decisions/0011-more-than-one-core.md: the cost of a message to another process or thread of the
 * machine. `node bench/spikes/cores/transports.ts [seconds] [body bytes] [in flight]`. Messages that are sent in one
 * turn of the event loop share a frame, as in packages/rpc; the other end sends each frame back. Prints the CPU time of
 * both ends per message and its answer.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MessageChannel, Worker, isMainThread, workerData, type MessagePort } from 'node:worker_threads'

const seconds = Number(process.argv[2] ?? 2)
const bodyBytes = Number(process.argv[3] ?? 1024)
const inFlight = Number(process.argv[4] ?? 64)
const headBytes = 4

interface Frames {
  send(frame: Uint8Array): void
  onFrame: (frame: Buffer) => void
}

function overSocket(socket: Socket): Frames {
  let rest: Buffer = Buffer.alloc(0)
  const frames: Frames = {
    send: frame => {
      const head = Buffer.alloc(headBytes)
      head.writeUInt32LE(frame.length)
      socket.cork()
      socket.write(head)
      socket.write(frame)
      socket.uncork()
    },
    onFrame: () => {},
  }
  socket.setNoDelay?.(true)
  socket.on('data', chunk => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    while (rest.length >= headBytes && rest.length >= headBytes + rest.readUInt32LE()) {
      const end = headBytes + rest.readUInt32LE()
      const frame = rest.subarray(headBytes, end)
      rest = rest.subarray(end)
      frames.onFrame(frame)
    }
  })
  return frames
}

function overPort(port: MessagePort, transfer: boolean): Frames {
  const frames: Frames = {
    // The bytes are copied in both cases, because those of a frame come from buffers that are used for other data too.
    send: frame => {
      if (!transfer) return port.postMessage(frame)
      const own = new Uint8Array(frame)
      port.postMessage(own, [own.buffer])
    },
    onFrame: () => {},
  }
  port.on('message', ({ buffer, byteOffset, byteLength }: Uint8Array) => {
    frames.onFrame(Buffer.from(buffer, byteOffset, byteLength))
  })
  return frames
}

function echo(frames: Frames): void {
  frames.onFrame = frame => frames.send(Buffer.from(frame))
}

/** Keeps `inFlight` messages in flight. Resolves with the number of messages that came back. */
async function drive(frames: Frames, forMs: number): Promise<number> {
  let answered = 0
  let waiting = 0
  let scheduled = false
  const endsAt = performance.now() + forMs
  const ended = Promise.withResolvers<void>()
  const flush = (): void => {
    scheduled = false
    const count = inFlight - waiting
    if (performance.now() >= endsAt) return waiting === 0 ? ended.resolve() : undefined
    const bodies = Array.from({ length: count }, () => Buffer.alloc(bodyBytes, 0x20))
    waiting += count
    frames.send(Buffer.concat(bodies))
  }
  frames.onFrame = frame => {
    const count = frame.length / bodyBytes
    answered += count
    waiting -= count
    if (scheduled) return
    scheduled = true
    setImmediate(flush)
  }
  flush()
  await ended.promise
  return answered
}

const cpuUs = (): number => { const { user, system } = process.cpuUsage(); return user + system }

/** @param farUs returns the CPU time of the other end when it is another process */
async function measure(what: string, frames: Frames, farUs: () => Promise<number>): Promise<void> {
  await drive(frames, 500)
  const before = cpuUs() + await farUs()
  const count = await drive(frames, seconds * 1000)
  const used = cpuUs() + await farUs() - before
  const rate = Math.round(count / seconds)
  console.log(`${what}: ${rate} round trips/s, ${(used / count).toFixed(2)} us CPU each, both ends`)
}

async function throughProcess(what: string, address: string | number): Promise<void> {
  const child = fork(import.meta.filename, [String(address)], { env: { ...process.env, TRANSPORTS_ECHO: '1' } })
  const reply = async (): Promise<{ port: number; cpu: number }> => (await once(child, 'message'))[0]
  const { port } = await reply()
  const socket = typeof address === 'string' ? connect(address) : connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const farUs = async (): Promise<number> => {
    const answer = reply()
    child.send('cpu')
    return (await answer).cpu
  }
  await measure(what, overSocket(socket), farUs)
  socket.destroy()
  child.disconnect()
  await once(child, 'exit')
}

async function throughThread(what: string, transfer: boolean): Promise<void> {
  const { port1, port2 } = new MessageChannel()
  const worker = new Worker(new URL(import.meta.url), { workerData: { port: port2, transfer }, transferList: [port2] })
  await once(worker, 'online')
  await measure(what, overPort(port1, transfer), () => Promise.resolve(0))
  await worker.terminate()
}

if (!isMainThread) {
  const { port, transfer } = workerData as { port: MessagePort; transfer: boolean }
  echo(overPort(port, transfer))
} else if (process.env.TRANSPORTS_ECHO) {
  const address = process.argv[2]!
  const server = createServer(socket => echo(overSocket(socket)))
  server.listen(/^\d+$/.test(address) ? { port: 0, host: '127.0.0.1' } : { path: address })
  await once(server, 'listening')
  const bound = server.address()
  process.on('message', () => process.send?.({ cpu: cpuUs() }))
  process.on('disconnect', () => process.exit())
  process.send?.({ port: bound !== null && typeof bound === 'object' ? bound.port : 0 })
} else {
  const folder = mkdtempSync(join(tmpdir(), 'sectional-transports-'))
  await throughProcess('process, Unix socket', join(folder, 'socket'))
  await throughProcess('process, TCP on loopback', 0)
  await throughThread('thread, MessagePort, copied', false)
  await throughThread('thread, MessagePort, transferred', true)
  rmSync(folder, { recursive: true })
}
