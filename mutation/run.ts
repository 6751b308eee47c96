/** `scripts/mutants`: changes production code in one place, and tells which tests notice it. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { applyMutant, mutantDigest, mutatedText, readMutants, type Mutant } from './mutant-list.ts'
import { resultTable } from './result-table.ts'
import { runScenarios } from './scenario-step.ts'
import { ResultFolder, stepNames, type StepName, type StepOutcome } from './step-result.ts'
import { runSwarm } from './swarm-step.ts'
import { copyTree, removeTree } from './tree-copy.ts'
import { runUnitTests } from './unit-step.ts'

const usage = `scripts/mutants                       runs the steps that have no result yet, for all mutants
scripts/mutants --only NAME           for this mutant only; may be given more than once
scripts/mutants --step STEP           this step only: unit, swarm or scenarios; may be given more than once
scripts/mutants --seeds N             runs at most N seeds of the swarm for each (default 300); a later run continues
scripts/mutants --again               runs steps again that have a result
scripts/mutants --scenarios           runs the scenarios also for mutants that the other steps catch
scripts/mutants --table               prints the results as a table of Markdown
scripts/mutants --list                prints the mutants
Results are kept in .mutants/, so that the next run continues where this one ended.
exit status: 0 every mutant was caught, 1 nothing catches one of them, 2 wrong usage`

const checkout = fileURLToPath(new URL('..', import.meta.url))
const results = new ResultFolder(join(checkout, '.mutants'))

function readFlags() {
  try {
    const { values } = parseArgs({ options: {
      only: { type: 'string', multiple: true }, step: { type: 'string', multiple: true }, again: { type: 'boolean' },
      seeds: { type: 'string', default: '300' }, scenarios: { type: 'boolean' }, table: { type: 'boolean' },
      list: { type: 'boolean' }, help: { type: 'boolean' },
    } })
    const all = readMutants()
    for (const name of values.only ?? []) {
      if (!all.some(mutant => mutant.name === name)) throw new Error(`there is no mutant ${name}`)
    }
    for (const step of values.step ?? []) {
      if (!stepNames.includes(step as StepName)) throw new Error(`there is no step ${step}`)
    }
    const seeds = Number(values.seeds)
    if (!Number.isInteger(seeds) || seeds < 1) throw new Error(`--seeds ${values.seeds}: only a number is allowed`)
    const mutants = all.filter(({ name }) => values.only?.includes(name) ?? true)
    return { ...values, mutants, seeds, steps: stepNames.filter(step => values.step?.includes(step) ?? true) }
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`)
    return null
  }
}

function currentCommit(): string {
  const git = (...words: string[]): string => execFileSync('git', words, { cwd: checkout, encoding: 'utf8' }).trim()
  const changed = git('status', '--porcelain', '--untracked-files=no') !== ''
  return git('rev-parse', '--short', 'HEAD') + (changed ? '+' : '')
}

type Flags = NonNullable<ReturnType<typeof readFlags>>

function runStep(step: StepName, copy: string, mutant: Mutant, { again, seeds }: Flags): Promise<StepOutcome> {
  if (step === 'unit') return runUnitTests(copy, checkout, mutant.file)
  if (step === 'scenarios') return runScenarios(copy, checkout)
  return runSwarm(copy, checkout, again ? 0 : results.read(mutant, step)?.seeds ?? 0, seeds)
}

/** The scenarios take minutes, so they are run for those mutants only that the other steps have missed. */
function isNeeded(mutant: Mutant, step: StepName, { again, scenarios, seeds }: Flags): boolean {
  const before = again ? undefined : results.read(mutant, step)
  if (before !== undefined && (before.caught || step !== 'swarm' || before.seeds! >= seeds)) return false
  if (step !== 'scenarios' || scenarios) return true
  return !(['unit', 'swarm'] as const).some(other => results.read(mutant, other)?.caught ?? true)
}

async function measure(flags: Flags): Promise<number> {
  const commit = currentCommit()
  const copy = copyTree(checkout)
  process.once('exit', () => removeTree(copy))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  for (const mutant of flags.mutants) {
    const restore = applyMutant(copy, mutant)
    for (const step of flags.steps) {
      if (!isNeeded(mutant, step, flags)) continue
      const startedMs = performance.now()
      const outcome = await runStep(step, copy, mutant, flags)
      const seconds = Math.round((performance.now() - startedMs) / 1000)
      results.write({ ...outcome, mutant: mutant.name, step, digest: mutantDigest(mutant), commit, seconds })
      console.log(`${mutant.name}: ${step} ${outcome.caught ? 'caught' : 'MISSED'} (${outcome.by}) in ${seconds} s`)
    }
    restore()
  }
  const missed = flags.mutants.filter(mutant =>
    stepNames.every(step => results.read(mutant, step)?.caught !== true)).map(({ name }) => name)
  console.log(missed.length === 0 ? 'every mutant was caught' : `not caught: ${missed.join(', ')}`)
  return missed.length === 0 ? 0 : 1
}

async function main(): Promise<number> {
  const flags = readFlags()
  if (flags === null) return 2
  if (flags.help) console.log(usage)
  else if (flags.list) for (const { name, file, breaks } of flags.mutants) console.log(`${name} (${file}): ${breaks}`)
  else if (flags.table) console.log(resultTable(flags.mutants, results))
  else {
    for (const mutant of flags.mutants) mutatedText(checkout, mutant)
    return measure(flags)
  }
  return 0
}

process.exitCode = await main()
