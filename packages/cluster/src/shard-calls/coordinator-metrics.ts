import type { Metrics } from '@sectional/runtime'

const readOutcomes = ['local', 'agreed', 'merged', 'degraded', 'failed'] as const
const writeOutcomes = ['met', 'accepted', 'failed'] as const
const repairOutcomes = ['repaired', 'unneeded', 'failed', 'dropped'] as const
const decisionOutcomes = ['first', 'stand_in', 'catching_up', 'reviewed'] as const

type ReadOutcome = (typeof readOutcomes)[number]
type WriteOutcomeName = (typeof writeOutcomes)[number]
type DecisionOutcome = (typeof decisionOutcomes)[number]
type RepairOutcome = (typeof repairOutcomes)[number]

/** Counts outcomes on the hot path. The counts are added to the node's metrics only when these are collected. */
export class CoordinatorMetrics {
  readonly #reads: Tally<ReadOutcome>
  readonly #writes: Tally<WriteOutcomeName>
  readonly #repairs: Tally<RepairOutcome>
  readonly #decisions: Tally<DecisionOutcome>

  constructor(metrics: Metrics) {
    this.#reads = tally(
      metrics, 'sectional_quorum_reads_total', 'Document reads by how their replicas answered.', readOutcomes,
    )
    this.#writes = tally(
      metrics, 'sectional_quorum_writes_total', 'Batches of one shard by whether w replicas confirmed them.',
      writeOutcomes,
    )
    this.#repairs = tally(
      metrics, 'sectional_read_repairs_total', 'Documents whose replicas differed, by what became of the repair.',
      repairOutcomes,
    )
    this.#decisions = tally(
      metrics, 'sectional_edit_decisions_total', 'Batches of one shard by how they were decided.', decisionOutcomes,
    )
  }

  read(outcome: ReadOutcome): void { this.#reads[outcome]++ }
  write(outcome: WriteOutcomeName): void { this.#writes[outcome]++ }
  repair(outcome: RepairOutcome): void { this.#repairs[outcome]++ }
  decision(outcome: DecisionOutcome): void { this.#decisions[outcome]++ }
}

type Tally<Outcome extends string> = Record<Outcome, number>

function tally<Outcome extends string>(
  metrics: Metrics, name: string, help: string, outcomes: readonly Outcome[],
): Tally<Outcome> {
  const counts = Object.fromEntries(outcomes.map(outcome => [outcome, 0])) as Tally<Outcome>
  const counter = metrics.counter(name, help, ['outcome'])
  metrics.onCollect(() => {
    for (const outcome of outcomes) {
      counter.add(counts[outcome], { outcome })
      counts[outcome] = 0
    }
  })
  return counts
}
