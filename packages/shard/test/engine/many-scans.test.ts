import { expect } from 'chai'
import { ShardHost } from '../../src/index.ts'
import type { ShardEngine } from '../../src/index.ts'
import { context, edit, shardA, shardB, shardRuntime } from '../shard-world.ts'

const ids = Array.from({ length: 40 }, (_, number) => `d${number}`)
const text = 'x'.repeat(30 * 1024)
const scansMax = 1000

type Scan = AsyncGenerator<readonly unknown[]>

const kinds: Readonly<Record<string, (replica: ShardEngine) => Scan>> = {
  documents: replica => replica.scanDocuments({ descending: false, body: true, leaves: false }, context),
  changes: replica => replica.scanChanges(
    { since: 0, descending: false, body: true, locals: false, purges: false }, context),
}

describe('many open scans', () => {
  for (const [kind, scanOf] of Object.entries(kinds)) {
    it(`of ${kind} have smaller pages, on all shards of a node together`, async () => {
      const host = await ShardHost.open(shardRuntime())
      const replicas = [await host.create(shardA), await host.create(shardB)]
      for (const replica of replicas) {
        await replica.updateDocuments({ edits: ids.map(id => edit(id, null, { text })), revsLimit: 10 }, context)
      }
      const scans: Scan[] = []
      const open = async (replica: ShardEngine): Promise<number> => {
        const scan = scanOf(replica)
        scans.push(scan)
        return ((await scan.next()).value as readonly unknown[]).length
      }
      const first = await open(replicas[0]!)
      for (let count = 1; count < scansMax; count++) await open(replicas[count % 2]!)
      expect([first, await open(replicas[0]!), await open(replicas[1]!)]).to.deep.equal([9, 3, 3])
      const build = replicas[0]!.scanChanges(
        { since: 0, descending: false, body: true, locals: false, purges: true }, context)
      expect((await build.next()).value).to.have.length(first)
      await build.return(undefined)
      for (const scan of scans.splice(0)) await scan.return(undefined)
      expect(await open(replicas[1]!)).to.equal(first)
      await host.close()
    })
  }
})
