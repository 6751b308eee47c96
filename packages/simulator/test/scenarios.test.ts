import { scenarios } from '../src/scenarios/index.ts'
import { simulateScenario } from '../src/scenarios/simulated-cluster.ts'

const seed = 1

describe('scenarios in simulation', function () {
  this.timeout(60_000)
  for (const scenario of scenarios) {
    it(scenario.name, async () => { await simulateScenario(scenario, seed) })
  }
})
