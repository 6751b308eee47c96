/** What one step (unit tests, swarm, scenarios) says about one mutant, kept in a file so that a run can continue. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mutantDigest, type Mutant } from './mutant-list.ts'

export const stepNames = ['unit', 'swarm', 'scenarios'] as const
export type StepName = typeof stepNames[number]

export interface StepOutcome {
  readonly caught: boolean
  /** The test, checker or scenario that failed first, or what was run without a failure. */
  readonly by: string
  /** The number of seeds that the swarm has run without a failure. */
  readonly seeds?: number
}

export interface StepResult extends StepOutcome {
  readonly mutant: string
  readonly step: StepName
  readonly digest: string
  /** The commit of the checkout, with a plus sign if files had been changed since. */
  readonly commit: string
  readonly seconds: number
}

export class ResultFolder {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Returns undefined if the step has not been run, or was run with another change of this name. */
  read(mutant: Mutant, step: StepName): StepResult | undefined {
    const path = this.#path(mutant.name, step)
    if (!existsSync(path)) return undefined
    const result = JSON.parse(readFileSync(path, 'utf8')) as StepResult
    return result.digest === mutantDigest(mutant) ? result : undefined
  }

  write(result: StepResult): void {
    mkdirSync(this.#folder, { recursive: true })
    writeFileSync(this.#path(result.mutant, result.step), `${JSON.stringify(result, undefined, 2)}\n`)
  }

  #path(name: string, step: StepName): string {
    return join(this.#folder, `${name}.${step}.json`)
  }
}
