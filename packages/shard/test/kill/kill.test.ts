import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect } from 'chai'
import { LevelStorage } from '@sectional/runtime'
import { readRevision } from '@sectional/core'
import { ShardHost, verifyShard } from '../../src/index.ts'
import { context, shardA, shardB, shardRuntime } from '../shard-world.ts'

const kills = 10
const acknowledgedBeforeKill = [30, 200, 5, 120, 400, 1, 60, 250, 15, 90]

type Acknowledged = [shard: number, revisions: [id: string, revision: string][]]

/**
 * Runs the writer until the given number of calls was acknowledged, kills it, and returns all acknowledged documents.
 */
async function writeUntilKilled(directory: string, run: number, calls: number): Promise<Acknowledged[]> {
  const writer = spawn(
    process.execPath,
    ['--conditions=sectional-source', join(import.meta.dirname, 'kill-writer.ts'), directory, String(run)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const exited = once(writer, 'exit')
  const acknowledged: Acknowledged[] = []
  for await (const line of createInterface({ input: writer.stdout })) {
    if (line.startsWith('[') && line.endsWith(']]]')) acknowledged.push(JSON.parse(line) as Acknowledged)
    if (acknowledged.length >= calls) writer.kill('SIGKILL')
  }
  const [, signal] = await exited as [number | null, string | null]
  expect(signal).to.equal('SIGKILL')
  return acknowledged
}

describe('a process that is killed while it writes', () => {
  it('has every acknowledged document when it starts again, and consistent records', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'shard-kill-'))
    const newest = new Map<string, { readonly shard: number; readonly revision: string }>()
    for (let run = 0; run < kills; run++) {
      for (const [shard, revisions] of await writeUntilKilled(directory, run, acknowledgedBeforeKill[run]!)) {
        for (const [id, revision] of revisions) newest.set(id, { shard, revision })
      }
      const host = await ShardHost.open(shardRuntime(new LevelStorage({ directory })))
      const engines = [await host.open(shardA), await host.open(shardB)]
      for (const engine of engines) expect((await verifyShard(engine.records)).problems).to.deep.equal([])
      for (const [id, { shard, revision }] of newest) {
        const snapshot = await engines[shard]!.openDocument({ id, body: true, tree: true }, context)
        expect(snapshot?.leaves, id).to.have.length(1)
        // The edit after the last acknowledged one may have become durable as well.
        expect(readRevision(snapshot!.leaves[0]!.revision)!.generation).to.be.within(
          readRevision(revision)!.generation, readRevision(revision)!.generation + 1,
        )
        expect(snapshot?.tree?.[0]?.path.ids).to.include(readRevision(revision)!.hash)
      }
      await host.close()
    }
    expect(newest.size).to.be.greaterThan(1000)
    rmSync(directory, { recursive: true })
  }).timeout(60_000)
})
