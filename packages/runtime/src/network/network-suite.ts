/**
 * The tests that every `Network` must pass; each implementation runs them under mocha. Exported as
 * `@sectional/runtime/network-suite`.
 */
import assert from 'node:assert/strict'
import type { Connection, Network, NetworkAddress, NetworkListener } from './network.ts'

export interface NetworkSuiteOptions {
  /** Makes two networks that reach each other, with frames of at most `maxFrameBytes`. */
  readonly create: (maxFrameBytes: number) => Promise<{ readonly a: Network; readonly b: Network }>
  readonly destroy: (networks: { readonly a: Network; readonly b: Network }) => Promise<void>
}

const maxFrameBytes = 1024 * 1024
const patience = { timeoutMs: 5000 }
const anyPort: NetworkAddress = { host: '127.0.0.1', port: 0 }

/** One end of a connection, with the frames and the end that it received. */
class End {
  readonly connection: Connection
  readonly frames: string[] = []
  readonly reasons: string[] = []
  readonly #waiters = new Set<() => void>()

  constructor(connection: Connection) {
    this.connection = connection
    connection.onClose = reason => { this.reasons.push(reason); this.#wake() }
  }

  listen(): this {
    this.connection.onFrame = frame => { this.frames.push(new TextDecoder().decode(frame)); this.#wake() }
    return this
  }

  send(text: string): void {
    this.connection.send(new TextEncoder().encode(text))
  }

  async heard(count: number): Promise<string[]> {
    await this.#until(() => this.frames.length >= count)
    return this.frames
  }

  async closed(): Promise<string[]> {
    await this.#until(() => this.reasons.length > 0)
    return this.reasons
  }

  #until(holds: () => boolean): Promise<void> {
    return new Promise(resolve => {
      const check = (): void => { if (holds()) { this.#waiters.delete(check); resolve() } }
      this.#waiters.add(check)
      check()
    })
  }

  #wake(): void {
    for (const check of [...this.#waiters]) check()
  }
}

/** Two nodes; `a` listens. */
class Fixture {
  readonly #options: NetworkSuiteOptions
  readonly #accepted: Connection[] = []
  readonly #waiting: ((connection: Connection) => void)[] = []
  #networks: { readonly a: Network; readonly b: Network } | undefined
  #listener: NetworkListener | undefined

  constructor(options: NetworkSuiteOptions) {
    this.#options = options
  }

  get a(): Network {
    assert(this.#networks)
    return this.#networks.a
  }

  get b(): Network {
    assert(this.#networks)
    return this.#networks.b
  }

  get listener(): NetworkListener {
    assert(this.#listener)
    return this.#listener
  }

  async setUp(): Promise<void> {
    this.#networks = await this.#options.create(maxFrameBytes)
    this.#listener = await this.a.listen(anyPort, connection => {
      const waiting = this.#waiting.shift()
      if (waiting === undefined) this.#accepted.push(connection)
      else waiting(connection)
    })
  }

  async tearDown(): Promise<void> {
    await this.listener.close()
    assert(this.#networks)
    await this.#options.destroy(this.#networks)
    this.#accepted.length = 0
  }

  /** Connects the two nodes and returns both ends; each has only a listener for the end of the connection. */
  async link(): Promise<[End, End]> {
    const accepted = this.#accept()
    const near = new End(await this.b.connect(this.listener.address, patience))
    return [near, new End(await accepted)]
  }

  #accept(): Promise<Connection> {
    const connection = this.#accepted.shift()
    return connection === undefined ? new Promise(resolve => this.#waiting.push(resolve)) : Promise.resolve(connection)
  }
}

export function networkSuite(name: string, options: NetworkSuiteOptions): void {
  describe(`${name} as a network`, () => {
    const fixture = new Fixture(options)
    beforeEach(() => fixture.setUp())
    afterEach(() => fixture.tearDown())
    describe('frames', () => frames(fixture))
    describe('back-pressure', () => backPressure(fixture))
    describe('closing', () => closing(fixture))
    describe('addresses', () => addresses(fixture))
  })
}

function frames(fixture: Fixture): void {
  it('arrive whole and in order, both ways', async () => {
    const [near, far] = await fixture.link()
    near.listen()
    far.listen()
    const sent = Array.from({ length: 200 }, (_, index) => `${index}-`.repeat(index))
    for (const text of sent) { near.send(text); far.send(text) }
    assert.deepEqual(await far.heard(200), sent)
    assert.deepEqual(await near.heard(200), sent)
  })

  it('wait for a receiver that has set no listener yet', async () => {
    const [near, far] = await fixture.link()
    far.send('one')
    far.send('two')
    far.listen()
    near.send('knock')
    await far.heard(1)
    assert.deepEqual(await near.listen().heard(2), ['one', 'two'])
  })

  it('do not change with the buffer that they were sent from', async () => {
    const [near, far] = await fixture.link()
    const buffer = new TextEncoder().encode('first')
    near.connection.send(buffer)
    buffer.fill(0x78)
    near.connection.send(buffer.subarray(0, 2))
    assert.deepEqual(await far.listen().heard(2), ['first', 'xx'])
  })

  it('may be as large as the limit, and end the connection when they are larger', async () => {
    const [near, far] = await fixture.link()
    near.connection.send(new Uint8Array(maxFrameBytes))
    assert.equal((await far.listen().heard(1))[0]?.length, maxFrameBytes)
    near.connection.send(new Uint8Array(maxFrameBytes + 1))
    assert.equal((await near.closed()).length, 1)
    assert.equal((await far.closed()).length, 1)
    assert.equal(far.frames.length, 1)
  })
}

function backPressure(fixture: Fixture): void {
  it('holds frames while the receiver pauses, and counts them at the sender', async () => {
    const [near, far] = await fixture.link()
    far.listen()
    far.connection.pause()
    const frame = new Uint8Array(maxFrameBytes)
    for (let sent = 0; sent < 24; sent++) near.connection.send(frame)
    near.listen()
    far.send('still writing')
    await near.heard(1)
    assert.equal(far.frames.length, 0)
    assert(near.connection.bufferedBytes > maxFrameBytes)
    far.connection.resume()
    await far.heard(24)
    assert.equal(far.frames.length, 24)
  })

  it('lets a receiver pause between frames that have arrived', async () => {
    const [near, far] = await fixture.link()
    const seen: number[] = []
    const pausing = new Promise<void>(resolve => {
      far.connection.onFrame = frame => {
        seen.push(frame.length)
        if (seen.length === 3) { far.connection.pause(); resolve() }
      }
    })
    for (let length = 1; length <= 5; length++) near.connection.send(new Uint8Array(length))
    await pausing
    near.listen()
    far.send('paused')
    await near.heard(1)
    assert.deepEqual(seen, [1, 2, 3])
    const rest = new Promise<void>(resolve => {
      far.connection.onFrame = frame => { seen.push(frame.length); if (seen.length === 5) resolve() }
    })
    far.connection.resume()
    await rest
    assert.deepEqual(seen, [1, 2, 3, 4, 5])
  })
}

function closing(fixture: Fixture): void {
  it('follows when more bytes arrive than are allowed, also inside of a frame', async () => {
    const [near, far] = await fixture.link()
    near.listen()
    far.listen()
    far.connection.limitReceived(100_000)
    near.send('x'.repeat(99_000))
    assert.equal((await far.heard(1)).length, 1)
    far.connection.limitReceived(null)
    near.send('x'.repeat(500_000))
    assert.equal((await far.heard(2)).length, 2)
    far.connection.limitReceived(100_000)
    near.send('x'.repeat(500_000))
    assert.equal((await far.closed()).length, 1)
    await near.closed()
    assert.equal(far.frames.length, 2)
  })

  it('is reported once at both ends, after the frames sent before it', async () => {
    const [near, far] = await fixture.link()
    far.listen()
    near.send('last')
    near.connection.close('done here')
    near.connection.close('again')
    near.send('too late')
    assert.equal((await near.closed()).length, 1)
    assert.deepEqual(await far.closed(), ['done here'])
    assert.deepEqual(far.frames, ['last'])
    far.send('nobody is there')
    far.connection.close('twice')
    assert.equal(far.reasons.length, 1)
  })

  it('is reported to a listener that is set later', async () => {
    const [near, far] = await fixture.link()
    near.listen()
    near.connection.onClose = undefined
    far.connection.close('early')
    await far.closed()
    assert.deepEqual(await new End(near.connection).closed(), ['early'])
  })

  it('may happen inside a frame callback', async () => {
    const [near, far] = await fixture.link()
    far.connection.onFrame = frame => { far.frames.push(String(frame.length)); far.connection.close('enough') }
    near.listen()
    near.send('1')
    near.send('2')
    assert.deepEqual(await near.closed(), ['enough'])
    assert.deepEqual(far.frames, ['1'])
  })
}

function addresses(fixture: Fixture): void {
  it('name the port that was bound', () => {
    assert.equal(fixture.listener.address.host, anyPort.host)
    assert(fixture.listener.address.port > 0)
  })

  it('can be bound once', async () => {
    await assert.rejects(
      fixture.b.listen(fixture.listener.address, () => {}), new RegExp(String(fixture.listener.address.port)),
    )
  })

  it('refuse connections when the listener is closed, and keep open connections', async () => {
    const [near, far] = await fixture.link()
    await fixture.listener.close()
    await assert.rejects(
      fixture.b.connect(fixture.listener.address, patience), new RegExp(String(fixture.listener.address.port)),
    )
    near.send('alive')
    assert.deepEqual(await far.listen().heard(1), ['alive'])
  })

  it('accept no connection after the signal has aborted', async () => {
    const controller = new AbortController()
    const connecting = fixture.b.connect(fixture.listener.address, { ...patience, signal: controller.signal })
    controller.abort()
    await assert.rejects(connecting, /abort/)
    await assert.rejects(
      fixture.b.connect(fixture.listener.address, { ...patience, signal: controller.signal }), /abort/,
    )
  })
}
