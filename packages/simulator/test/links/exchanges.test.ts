import { expect } from 'chai'
import type { ShardReplica } from '@sectional/core'
import { Exchanges } from '../../src/links/exchanges.ts'
import { drillLinks } from '../../src/links/link-drills.ts'
import { LinkWorkload } from '../../src/links/link-workload.ts'
import { OpenLinks } from '../../src/links/open-links.ts'
import { Schedule } from '../../src/plan/schedule.ts'
import { withChanges } from '../../src/planted/planted-bug.ts'
import { Dice } from '../../src/world/dice.ts'
import { Failure } from '../../src/world/failure.ts'
import { World } from '../../src/world/world.ts'

/** Changes what the caller of a replica is told. */
type Alter = (replica: ShardReplica) => Partial<ShardReplica>

/** Makes exchanges, and the drills of links, in a new cluster of three nodes. Returns the rule that was broken. */
async function brokenRule(seed: number, alter: Alter = () => ({})): Promise<string | undefined> {
  const dice = new Dice(seed)
  const world = new World({ seed, nodes: 3 })
  world.observers.add({
    network: (_, network) => withChanges(network, {
      replica: (name, shard) => {
        const remote = network.replica(name, shard)
        return shard.incarnation === 'exchanges' ? withChanges(remote, alter(remote)) : remote
      },
    }),
  })
  const exchanges = new Exchanges(world)
  const workload = new LinkWorkload({ world, dice, exchanges, links: new OpenLinks(world) })
  try {
    await world.run(async () => {
      await world.start(1, 2, 3)
      await world.ready()
      await workload.atRest()
    }, 600_000)
    await drillLinks({ world, dice, exchanges }, new Schedule(undefined), async () => {})
    return undefined
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return error.finder
  }
}

async function ruleOfFirstFinding(alter: Alter): Promise<string | undefined> {
  for (let seed = 1; seed <= 10; seed++) {
    const rule = await brokenRule(seed, alter)
    if (rule !== undefined) return rule
  }
  return undefined
}

describe('exchanges between nodes', function () {
  this.timeout(60_000)

  it('find nothing in sound links', async () => {
    for (let seed = 1; seed <= 6; seed++) expect(await brokenRule(seed), `seed ${seed}`).to.equal(undefined)
  })

  it('find a scan that ends early', async () => {
    expect(await ruleOfFirstFinding(replica => ({
      scanLocalDocuments: async function* (request, context) {
        for await (const page of replica.scanLocalDocuments(request, context)) {
          yield page
          return
        }
      },
    }))).to.equal('streams-complete')
  })

  it('find a call that never ends', async () => {
    expect(await ruleOfFirstFinding(replica => ({
      updateLocalDocument: async (request, context) => {
        try {
          return await replica.updateLocalDocument(request, context)
        } catch {
          return new Promise(() => {})
        }
      },
    }))).to.equal('calls-in-time')
  })
})
