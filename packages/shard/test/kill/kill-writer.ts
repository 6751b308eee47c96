/**
 * Writes to a shard in a loop and prints the acknowledged revisions until it is killed: `node kill-writer.ts DIRECTORY
 * RUN`. Prints one line for each acknowledged call: [shard, [[id, revision], ...]].
 */
import { writeSync } from 'node:fs'
import type { DocumentEdit } from '@sectional/core'
import { LevelStorage, ManualClock } from '@sectional/runtime'
import { ShardHost } from '../../src/index.ts'
import { context, edit, shardA, shardB, shardRuntime } from '../shard-world.ts'

const writers = 16
const stdout = 1

const directory = process.argv[2]!
const run = process.argv[3]!
const host = await ShardHost.open(shardRuntime(new LevelStorage({ directory }), new ManualClock(), Number(run) + 1))
const engines = [await host.create(shardA), await host.create(shardB)]
writeSync(stdout, 'ready\n')

async function write(writer: number): Promise<void> {
  const engine = engines[writer % engines.length]!
  const parents = new Map<string, string>()
  for (let turn = 0; ; turn++) {
    const edits: DocumentEdit[] = []
    for (let index = 0; index <= turn % 5; index++) {
      const id = `${run}-${writer}-${(turn * 7 + index) % 40}`
      edits.push(edit(id, parents.get(id) ?? null, { turn, text: 'x'.repeat(500) }))
    }
    const reply = await engine.updateDocuments({ edits, revsLimit: 5 }, context)
    if (reply.kind === 'declined') throw new Error('declined')
    const acknowledged = reply.outcomes.map((outcome, index): [string, string] => {
      if (outcome.kind !== 'updated') throw new Error(outcome.kind)
      const { id } = edits[index]!
      const revision = `${outcome.path.start}-${outcome.path.ids[0]}`
      parents.set(id, revision)
      return [id, revision]
    })
    writeSync(stdout, `${JSON.stringify([writer % engines.length, acknowledged])}\n`)
  }
}

await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)))
