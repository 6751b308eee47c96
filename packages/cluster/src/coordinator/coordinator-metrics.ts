import type { Metrics } from '@sectional/runtime'

const readOutcomes = ['local', 'agreed', 'merged', 'degraded', 'failed'] as const
const writeOutcomes = ['met', 'accepted', 'failed'] as const
const repairOutcomes = ['repaired', 'unneeded', 'failed', 'dropped'] as const
const decisionOutcomes = ['first', 'stand_in', 'catching_up', 'reviewed'] as const

type ReadOutcome = (typeof readOutcomes)[number]
type WriteOutcomeName = (typeof writeOutcomes)[number]
type DecisionOutcome = (typeof decisionOutcomes)[number]
type RepairOutcome = (typeof repairOutcomes)[number]

/** Counts on the hot path, handed to the node's metrics only when those are collected. */
export class CoordinatorMetrics {
  readonly #counts = new Map<string, number>()

  constructor(metrics: Metrics) {
    const families = [
      { name: 'sectional_quorum_reads_total', help: 'Document reads by how their replicas answered.', outcomes: readOutcomes },
      { name: 'sectional_quorum_writes_total', help: 'Batches of one shard by whether w replicas confirmed them.', outcomes: writeOutcomes },
      { name: 'sectional_read_repairs_total', help: 'Documents whose replicas differed, by what became of the repair.', outcomes: repairOutcomes },
      { name: 'sectional_edit_decisions_total', help: 'Batches of one shard by how they were decided.', outcomes: decisionOutcomes },
    ].map(({ name, help, outcomes }) => ({ name, outcomes, counter: metrics.counter(name, help, ['outcome']) }))
    metrics.onCollect(() => {
      for (const { name, outcomes, counter } of families) {
        for (const outcome of outcomes) {
          const key = `${name} ${outcome}`
          const count = this.#counts.get(key) ?? 0
          counter.add(count, { outcome })
          this.#counts.delete(key)
        }
      }
    })
  }

  read(outcome: ReadOutcome): void { this.#add(`sectional_quorum_reads_total ${outcome}`) }
  write(outcome: WriteOutcomeName): void { this.#add(`sectional_quorum_writes_total ${outcome}`) }
  repair(outcome: RepairOutcome): void { this.#add(`sectional_read_repairs_total ${outcome}`) }
  decision(outcome: DecisionOutcome): void { this.#add(`sectional_edit_decisions_total ${outcome}`) }

  #add(key: string): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
  }
}
