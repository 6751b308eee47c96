/** Runs the directed scenarios on real processes. The simulator runs the same ones. */
import { layoutOf, playScenario, scenarios } from '@sectional/simulator/scenarios'
import type { Scenario } from '@sectional/simulator/scenarios'
import { ProcessCluster } from '../src/process-cluster.ts'

/** Scenarios with the same layout share a cluster, which is restored between them. */
const byLayout = Map.groupBy(scenarios, scenario => JSON.stringify(layoutOf(scenario)))

describe('scenarios on real processes', () => {
  for (const [layout, group] of byLayout) {
    describe(`with ${layout}`, () => {
      let cluster: ProcessCluster
      let broken = false
      before(async () => { cluster = await ProcessCluster.start(layoutOf(group[0]!)) })
      after(() => cluster.close(broken))

      for (const [index, scenario] of group.entries()) {
        it(scenario.name, async function () {
          if (!canPlay(scenario, cluster)) return this.skip()
          broken = true
          if (index > 0) await cluster.restore()
          await playScenario(scenario, cluster)
          broken = false
        })
      }
    })
  }
})

function canPlay({ needs = [] }: Scenario, { abilities }: { readonly abilities: readonly string[] }): boolean {
  return needs.every(need => abilities.includes(need))
}
