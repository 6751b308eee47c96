/** All directed scenarios, in the order in which they are run. */
import { absences } from './absences.ts'
import { impairments } from './impairments.ts'
import { keeping } from './keeping.ts'
import { membership } from './membership.ts'
import { partitions } from './partitions.ts'
import { layoutOf } from './scenario.ts'
import type { Scenario } from './scenario.ts'
import type { ScenarioCluster } from './scenario-cluster.ts'
import { Stage } from './stage.ts'

export * from './scenario.ts'
export * from './scenario-cluster.ts'
export { Stage } from './stage.ts'

export const scenarios: readonly Scenario[] = [...absences, ...partitions, ...membership, ...impairments, ...keeping]

/** Plays one scenario on a cluster whose first `running` nodes were started. */
export async function playScenario(scenario: Scenario, cluster: ScenarioCluster): Promise<void> {
  const stage = new Stage(cluster, databaseName(scenario))
  await stage.ready(...Array.from({ length: layoutOf(scenario).running }, (_, index) => index + 1))
  await stage.linked()
  await scenario.run(stage)
}

function databaseName({ name }: Scenario): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-').slice(0, 60)
}
