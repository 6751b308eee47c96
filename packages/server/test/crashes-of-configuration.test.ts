import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { ConfigurationFolder } from '../src/command-line/configuration-folder.ts'
import { prepareAdministrators } from '../src/configuration/administrators.ts'
import { LiveConfiguration } from '../src/configuration/live-configuration.ts'
import { FailingDisk, outcomes } from './failing-disk.ts'

const persist = { persist: true }

/** The changes of one process after its start. The administrator carl is in a file of the operator. */
const changes: readonly ((configuration: LiveConfiguration) => Promise<unknown>)[] = [
  configuration => configuration.set('custom', 'colour', 'red', persist),
  configuration => configuration.delete('custom', 'colour', persist),
  configuration => configuration.set('admins', 'bert', '-hashed-b', persist),
  configuration => configuration.set('admins', 'anna', '-hashed-d', persist),
  configuration => configuration.delete('admins', 'carl', persist),
  configuration => configuration.delete('admins', 'bert', persist),
]

describe('the files of the configuration', () => {
  let folder: string
  let root: string
  let disk: FailingDisk
  let left: number

  /** @param hasFolder whether there is a file in `local.d`, and so this folder */
  function begin(hasFolder: boolean): void {
    // The real path, because the node resolves links before it writes.
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'crashes-')))
    root = join(folder, 'node')
    left = 0
    mkdirSync(root)
    writeFileSync(join(root, 'local.ini'), '; mine\n[admins]\nanna = secret\ncarl = of carl ; why\n')
    if (hasFolder) mkdirSync(join(root, 'local.d'))
    if (hasFolder) writeFileSync(join(root, 'local.d', 'a.ini'), '[admins]\nanna = other secret\n')
    disk = new FailingDisk(root)
  }

  function end(): void {
    disk.restore()
    rmSync(folder, { recursive: true })
  }

  async function load(path: string): Promise<LiveConfiguration> {
    return LiveConfiguration.load(new ConfigurationFolder([path]), {})
  }

  /** Starts a process, which replaces the passwords in plain text by hashes. */
  async function start(path = root): Promise<LiveConfiguration> {
    const configuration = await load(path)
    await configuration.check()
    await prepareAdministrators(configuration, text => text.startsWith('-'), async (_, text) => `-hashed-${text}`)
    return configuration
  }

  /** Returns the settings. A password counts as its hash. */
  function stateOf(configuration: LiveConfiguration): unknown {
    const { admins = {}, custom = {} } = configuration.sections()
    const hashes = Object.entries(admins).map(([name, text]) => [name, text.replace(/^-hashed-/, '')])
    return { admins: Object.fromEntries(hashes), custom }
  }

  /** Returns the settings that a process would start with, after a crash and an outcome. */
  async function stateAfter(outcome: typeof outcomes[number]): Promise<unknown> {
    const target = join(folder, `left${left++}`)
    disk.leave(outcome, target)
    const configuration = await load(target)
    await configuration.check()
    return stateOf(configuration)
  }

  /** Returns the settings after each number of changes, and the steps of the disk. */
  async function wholeRun(hasFolder: boolean): Promise<{ states: readonly unknown[]; steps: number }> {
    begin(hasFolder)
    try {
      const configuration = await start()
      const states = [stateOf(configuration)]
      for (const change of changes) {
        await change(configuration)
        states.push(stateOf(configuration))
        for (const outcome of outcomes) expect(await stateAfter(outcome), outcome).to.deep.equal(states.at(-1))
      }
      return { states, steps: disk.steps }
    } finally {
      end()
    }
  }

  /** Starts a process and makes changes until one fails. Returns how many were acknowledged. */
  async function runUntilKilled(from: number): Promise<number> {
    let acknowledged = from
    try {
      const configuration = await start()
      for (const change of changes.slice(from)) {
        await change(configuration)
        acknowledged++
      }
    } catch {
      // The process is gone.
    }
    return acknowledged
  }

  for (const hasFolder of [false, true]) {
    const where = hasFolder ? 'in an existing folder' : 'in a new folder'

    it(`have the old or the new settings when the process or the machine stops at any step, ${where}`, async () => {
      const { states, steps } = await wholeRun(hasFolder)
      expect(states.length).to.equal(changes.length + 1)
      expect(steps).to.be.above(6 * changes.length)
      for (let at = 1; at <= steps; at++) {
        begin(hasFolder)
        try {
          disk.failAt(at, 'kill')
          const acknowledged = await runUntilKilled(0)
          expect(acknowledged, `step ${at}`).to.be.below(changes.length)
          const allowed = states.slice(acknowledged, acknowledged + 2)
          for (const outcome of outcomes) {
            expect(allowed, `step ${at}, ${outcome}`).to.deep.include(await stateAfter(outcome) as object)
          }
          // The next process goes on, and its changes are durable.
          disk.restart()
          expect(await runUntilKilled(acknowledged)).to.equal(changes.length)
          for (const outcome of outcomes) {
            expect(await stateAfter(outcome), `step ${at}, then ${outcome}`).to.deep.equal(states.at(-1))
          }
        } finally {
          end()
        }
      }
    }).timeout(60_000)

    it(`agree with the running node when a step fails, ${where}`, async () => {
      const { states, steps } = await wholeRun(hasFolder)
      for (let at = 1; at <= steps; at++) {
        begin(hasFolder)
        try {
          disk.failAt(at, 'error')
          const configuration = await start().catch(() => start())
          for (const [index, change] of changes.entries()) {
            const refusal: Error | null = await change(configuration).then(() => null, (error: Error) => error)
            if (refusal !== null) {
              expect(refusal.message, `step ${at}`).to.include('cannot write the file of its settings (EIO)')
              expect(stateOf(configuration), `step ${at}, in memory`).to.deep.equal(states[index])
              for (const outcome of outcomes) {
                expect(await stateAfter(outcome), `step ${at}, ${outcome}`).to.deep.equal(states[index])
              }
              await change(configuration)
            }
            expect(stateOf(configuration)).to.deep.equal(states[index + 1])
          }
          for (const outcome of outcomes) {
            expect(await stateAfter(outcome), `step ${at}, then ${outcome}`).to.deep.equal(states.at(-1))
          }
        } finally {
          end()
        }
      }
    }).timeout(60_000)
  }
})
