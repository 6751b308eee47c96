import { expect } from 'chai'
import { CheckpointsTrue } from '../../src/checkers/checkpoints-true.ts'
import { ConsensusRules } from '../../src/checkers/consensus-rules.ts'
import { MetadataLog } from '../../src/checkers/metadata-log.ts'
import { drills, durationMax } from '../../src/drills/index.ts'
import { firstSeed } from '../../src/drills/lost-seed-drill.ts'
import { FaultyDisks } from '../../src/faults/faulty-disks.ts'
import { plantedBugs } from '../../src/planted/index.ts'
import { Dice } from '../../src/world/dice.ts'
import { World } from '../../src/world/world.ts'
import { drillBugs } from './drill-bugs.ts'

/** Runs a drill in a new cluster of three nodes. Returns its findings, or the text of the failure that it met. */
async function findings(drill: string, seed: number, planted?: string): Promise<readonly string[]> {
  const dice = new Dice(seed)
  const plant = [...plantedBugs, ...drillBugs].find(({ name }) => name === planted)?.plant()
  const world = new World({ seed, nodes: 3, seeds: 1, ...(plant && { plant }) })
  const disks = new FaultyDisks(world, dice.fork('disks'), { min: 0, max: 2 })
  new ConsensusRules(world, disks)
  new CheckpointsTrue(world, disks, dice.fork('checkpoints'), 0)
  new MetadataLog(world)
  const number = drill === 'lost-seed' ? firstSeed : dice.pick(world.nodes).number
  const others = world.nodes.map(node => node.number).filter(other => other !== number)
  try {
    return await world.run(async () => {
      await world.start(1, 2, 3)
      await world.ready()
      await world.send(1, 'PUT', '/db?q=2&n=3')
      return drills[drill]!({ world, dice, disks, database: 'db', number, others })
    }, durationMax(drill))
  } catch (error) {
    return [String(error)]
  }
}

/** Drills with large or many documents take longer. */
function seedsOf(drill: string): number {
  const large = ['branches-limited', 'broken-list', 'broken-view', 'copied-completely', 'map-change', 'parts-exact']
  return large.includes(drill) ? 6 : 16
}

describe('drills', function () {
  this.timeout(120_000)

  for (const name of Object.keys(drills)) {
    it(`find nothing in sound nodes: ${name}`, async () => {
      for (let seed = 1; seed <= seedsOf(name); seed++) {
        expect(await findings(name, seed), `seed ${seed}`).to.deep.equal([])
      }
    })
  }

  for (const [name, bug] of [
    ['fresh-after-start', 'serves-before-links'], ['no-stale-decisions', 'no-catch-up'],
    ['writes-in-time', 'silence-is-waited-out'], ['older-disk', 'older-copy-unnoticed'],
    ['lost-writes', 'unnoticed-loss'], ['purged-everywhere', 'purge-without-ancestors'],
    ['no-false-absence', 'absent-without-asking'], ['contested-edits', 'no-catch-up'],
    ['contested-edits', 'parent-always-known'], ['broken-list', 'content-from-the-start'],
    ['leader-change', 'replaced-entries-stay'],
  ] as const) {
    it(`find a planted bug: ${name} finds ${bug}`, async () => {
      for (let seed = 1; seed <= 10; seed++) if ((await findings(name, seed, bug)).length > 0) return
      expect.fail('no seed found it')
    })
  }
})
