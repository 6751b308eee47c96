import { expect } from 'chai'
import { actions } from '../../src/actions/actions.ts'
import { drawSwarmOptions } from '../../src/plan/swarm-options.ts'
import type { SwarmOptions } from '../../src/plan/swarm-options.ts'
import { Dice } from '../../src/world/dice.ts'

const seeds = 300

/** What runs draw, with the smallest share of the seeds that must draw it. */
const drawn: readonly { readonly what: string; readonly shareMin: number; draws(options: SwarmOptions): boolean }[] = [
  {
    what: 'a suspension of all machines', shareMin: 1 / 3,
    draws: run => hasFaults(run) && run.suspension !== undefined,
  },
  { what: 'an idle time in which unused content is removed', shareMin: 1 / 3, draws: run => run.idleMs > 0 },
  { what: 'changes of options of nodes', shareMin: 0.3, draws: run => run.operations['node-option']! > 0 },
  { what: 'automatic purges', shareMin: 0.15, draws: run => run.operations['auto-purge']! > 0 },
  {
    what: 'purges through nodes that are cut off', shareMin: 0.25,
    draws: run => hasFault(run, 'isolate-one', 'isolate-leader') && run.operations['purge-through-cut-off']! > 0,
  },
  { what: 'drills at the end', shareMin: 0.25, draws: run => run.drillShare > 0 },
  { what: 'clients that create and delete the same databases', shareMin: 0.12, draws: run => run.nameClients > 0 },
  { what: 'full disks', shareMin: 0.4, draws: run => hasFault(run, 'full-disk') },
  { what: 'faults of up to ten minutes', shareMin: 0.1, draws: run => hasFaults(run) && run.faultMsMax >= 600_000 },
  { what: 'restarts of all nodes one after the other', shareMin: 0.3, draws: run => hasFault(run, 'restart-all') },
]

describe('the options of runs', () => {
  const runs = Array.from({ length: seeds }, (_, index) =>
    drawSwarmOptions(new Dice(index + 1).fork('options'), actions))

  for (const { draws, shareMin, what } of drawn) {
    it(`have ${what} in at least ${Math.round(shareMin * 100)} % of ${seeds} seeds`, () => {
      expect(runs.filter(draws).length).to.be.at.least(shareMin * seeds)
    })
  }
})

function hasFaults({ faultPauseMs }: SwarmOptions): boolean {
  return faultPauseMs !== Infinity
}

function hasFault(run: SwarmOptions, ...names: readonly (keyof SwarmOptions['faults'])[]): boolean {
  return hasFaults(run) && names.some(name => run.faults[name] > 0)
}
