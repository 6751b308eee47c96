// index-damage.test.ts runs this program: it builds an index of the given number of documents in the given directory,
// and prints a line for each page of changes, until it is killed.
import { LevelStorage } from '@sectional/runtime'
import type { Indexer } from '../../src/indexes/indexer.ts'
import { DamageWorld, indexer } from './damage-world.ts'

const [directory, documents] = process.argv.slice(2)
const printing: Indexer = {
  ...indexer,
  map: async (...call) => {
    process.stdout.write('page\n')
    return indexer.map(...call)
  },
}
const world = new DamageWorld()
await world.fill(Number(documents))
world.start(new LevelStorage({ directory: directory! }), printing)
setTimeout(() => process.exit(1), 30_000)
await world.build()
process.exit(0)
