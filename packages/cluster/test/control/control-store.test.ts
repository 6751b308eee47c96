import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LevelStorage, MemoryStorage, SeededRandom } from '@sectional/runtime'
import { expect } from 'chai'
import { RaftStorage } from '../../src/consensus/raft-storage.ts'
import { DamagedControlStoreError } from '../../src/consensus/sealed-records.ts'
import { ControlStore } from '../../src/control/control-store.ts'

/** More flips than the reproduction of the defect needed. */
const flips = 80

describe('the metadata on a real disk', () => {
  let base: string
  beforeEach(async () => { base = await mkdtemp(join(tmpdir(), 'sectional-metadata-')) })
  afterEach(() => rm(base, { recursive: true }))

  /** Writes terms, votes and entries, and copies the store as a crash would leave it. */
  async function written(): Promise<void> {
    const { store } = await ControlStore.open(new LevelStorage({ directory: join(base, 'live') }))
    const raft = new RaftStorage(store)
    for (let index = 1; index <= 12; index++) {
      const entry = { index, term: index, kind: 'command', payload: Buffer.from(`command ${index}`) } as const
      await raft.write({
        hardState: { term: index, vote: `node${index % 3}`, commit: index - 1 }, snapshot: null, entries: [entry],
        lastIndex: index, lastTerm: index,
      })
    }
    await cp(join(base, 'live'), join(base, 'left'), { recursive: true })
    await store.close()
  }

  async function loaded(directory: string): Promise<string> {
    let store
    try {
      ({ store } = await ControlStore.open(new LevelStorage({ directory })))
      const { hardState, log } = await new RaftStorage(store).load()
      return JSON.stringify({ hardState, lastIndex: log.lastIndex })
    } catch (error) {
      if (error instanceof DamagedControlStoreError) return 'refused'
      throw error
    } finally {
      await store?.close()
    }
  }

  it('is complete, or is refused, whichever bit of its log is flipped', async function () {
    this.timeout(60_000)
    await written()
    const folder = join(base, 'left', 'control')
    const logs = (await readdir(folder)).filter(file => file.endsWith('.log'))
    for (const file of logs) {
      const path = join(folder, file)
      const bytes = await readFile(path)
      for (let flip = 0; flip < flips && bytes.length > 0; flip++) {
        const bit = Math.floor(flip / flips * bytes.length * 8)
        const changed = Buffer.from(bytes)
        changed[bit >> 3]! ^= 1 << (bit & 7)
        await cp(join(base, 'left'), join(base, 'tried'), { recursive: true })
        await writeFile(join(base, 'tried', 'control', file), changed)
        expect(await loaded(join(base, 'tried')), `bit ${bit} of ${file}`).to.be.oneOf([
          'refused', '{"hardState":{"term":12,"vote":"node0","commit":11},"lastIndex":12}',
        ])
        await rm(join(base, 'tried'), { recursive: true })
      }
    }
    expect(await loaded(join(base, 'left'))).to.include('"term":12')
  })
})

describe('the metadata of a data directory that is given up', () => {
  it('is removed, apart from promised deletions and the starts of the node', async () => {
    const random = new SeededRandom(1)
    const control = await ControlStore.open(new MemoryStorage())
    await control.writeIdentity({ clusterId: 'c', node: 'a' })
    const first = await control.start(random)
    const intent = { name: 'db', incarnation: 'one' }
    await control.addIntent(intent)
    await control.giveUp()
    expect(control.identity()).to.equal(null)
    expect(control.givenUp()).to.equal(true)
    expect(await control.intents()).to.deep.equal([intent])
    expect((await control.start(random)).ids).to.include(first.ids[0])
    await control.forgetGivenUp()
    expect(control.givenUp()).to.equal(false)
    await control.store.close()
  })
})
