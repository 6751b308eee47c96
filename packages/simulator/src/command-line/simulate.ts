/** `scripts/simulate`: runs seeds, and prints failures together with the command that replays them. */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { runSwarm } from '../swarm/swarm-run.ts'
import type { SwarmHooks, SwarmResult } from '../swarm/swarm-run.ts'
import { exitCodes } from '../world/failure.ts'
import type { FailureKind } from '../world/failure.ts'
import { printMinimised } from './minimised.ts'
import { findPlanted, plantNamed } from './planted.ts'
import { ProcessGuards } from './process-guards.ts'

const usage = `scripts/simulate --seed N [--verbose]        one seed; --verbose prints its trace
scripts/simulate --seeds K [--seed N]        K seeds, from N or from the date on (--from N is the same)
scripts/simulate --minutes M [--from N]      as many seeds as M minutes allow
scripts/simulate ... [--workers W]           processes side by side (default 2)
scripts/simulate ... [--keep-going]          does not stop at the first failure
scripts/simulate --seed N --minimise         the shortest part of the seed's schedule that fails in the same way
scripts/simulate --seed N --only STEPS       takes only these steps of the schedule, as --minimise prints them
scripts/simulate --seed N --plant BUG        with a planted bug
scripts/simulate --planted [BUG]             each planted bug, the checker that caught it, and the seeds it took
scripts/simulate --planted [BUG] --swarm     the same by random runs only, also for bugs that have a scenario
scripts/simulate ... [--hashes]              prints each seed's trace hash
scripts/simulate --help                      prints this text
exit status: 0 all passed, 10 a crash, 11 a safety failure, 12 a liveness failure, 2 wrong usage`

const usageError = 2
const workersDefault = 2

/** The result of one seed as a worker reports it. */
interface Report {
  readonly seed: number
  readonly simulatedMs: number
  readonly operations: number
  readonly counts: Readonly<Record<string, number>>
  readonly traceHash: string
  readonly failure?: {
    readonly kind: FailureKind
    readonly finder: string
    readonly message: string
    readonly recent: readonly string[]
  }
}

async function runSeed(
  seed: number, guards: ProcessGuards, verbose: boolean, hooks: SwarmHooks = {},
): Promise<SwarmResult> {
  try {
    return await runSwarm(seed, {
      ...hooks, onWorld: world => guards.watch(world), ...(verbose && { onLine: line => console.log(line) }),
    })
  } finally {
    guards.watch(undefined)
  }
}

async function one(seed: number, verbose: boolean, hooks: SwarmHooks): Promise<number> {
  const guards = new ProcessGuards()
  guards.install()
  const result = await runSeed(seed, guards, verbose, hooks)
  if (!verbose) console.log(`seed ${seed}: ${JSON.stringify(result.options)}`)
  const simulated = `${(result.simulatedMs / 1000).toFixed(1)} s of simulated time`
  console.log(`trace ${result.traceHash}: ${result.events} events, ${result.operations} operations, ${simulated}`)
  if (result.failure !== undefined) printFailure(reportOf(result), verbose)
  console.log(result.failure === undefined ? '1 passed, 0 failed' : '0 passed, 1 failed')
  return result.failure === undefined ? 0 : exitCodes[result.failure.kind]
}

function reportOf({ seed, simulatedMs, operations, counts, traceHash, failure, recent }: SwarmResult): Report {
  return {
    seed, simulatedMs, operations, counts, traceHash,
    ...(failure && { failure: { kind: failure.kind, finder: failure.finder, message: failure.message, recent } }),
  }
}

function printFailure({ seed, failure }: Report, tracePrinted: boolean): void {
  if (failure === undefined) return
  if (!tracePrinted) for (const line of failure.recent) console.log(`    ${line}`)
  console.log(`seed ${seed}: ${failure.kind} (${failure.finder}): ${failure.message}`)
  console.log(`replay: scripts/simulate --seed ${seed} --verbose`)
}

/** The main function of a worker, which receives seeds from its parent one at a time. */
function work(): void {
  // Errors are frequent in a run with faults, and their stack traces took a twelfth of its time. The replay has them.
  Error.stackTraceLimit = 0
  const guards = new ProcessGuards()
  guards.install()
  process.on('message', (seed: number) => {
    void runSeed(seed, guards, false).then(result => { if (process.connected) process.send!(reportOf(result)) })
  })
}

interface Campaign {
  readonly from: number
  readonly seedsMax: number
  readonly untilMs: number
  readonly workers: number
  readonly keepGoing: boolean
  readonly hashes: boolean
}

function campaign({ from, seedsMax, untilMs, workers, keepGoing, hashes }: Campaign): Promise<number> {
  console.log(`seeds from ${from}`)
  const startedMs = performance.now()
  const failures: Report[] = []
  let next = from
  let passed = 0
  let simulatedMs = 0
  let operations = 0
  const counts = new Map<string, number>()
  /** Seeds whose worker ended before it had reported them. */
  let unfinished = 0
  const { promise, resolve } = Promise.withResolvers<number>()
  let running = 0
  const finish = (): void => {
    const minutes = (performance.now() - startedMs) / 60_000
    const seeds = passed + failures.length
    const hours = (simulatedMs / 3_600_000 / minutes).toFixed(2)
    const rate = `${Math.round(seeds / minutes)} seeds a minute, ${hours} simulated hours a minute`
    console.log(`${rate}, ${operations} operations`)
    console.log([...counts].sort(([a], [b]) => a < b ? -1 : 1).map(([key, count]) => `${key}: ${count}`).join(', '))
    console.log(`${passed} passed, ${failures.length + unfinished} failed`)
    const [first] = failures
    resolve(first?.failure === undefined ? Math.min(unfinished, 1) : exitCodes[first.failure.kind])
  }
  for (let index = 0; index < workers; index++) {
    const worker = fork(fileURLToPath(import.meta.url), ['--worker'], { execArgv: process.execArgv })
    running++
    let current: number | undefined
    const give = (): void => {
      const over = next >= from + seedsMax || performance.now() > untilMs || (failures.length > 0 && !keepGoing)
      current = over ? undefined : next++
      if (current === undefined) worker.disconnect()
      else worker.send(current)
    }
    worker.on('message', (report: Report) => {
      simulatedMs += report.simulatedMs
      operations += report.operations
      for (const [key, count] of Object.entries(report.counts)) counts.set(key, (counts.get(key) ?? 0) + count)
      if (hashes) console.log(`${report.seed} ${report.traceHash}`)
      if (report.failure === undefined) passed++
      else {
        failures.push(report)
        printFailure(report, false)
      }
      give()
    })
    worker.on('exit', (code, signal) => {
      if (current !== undefined) {
        unfinished++
        console.log(`seed ${current}: the worker ended with ${code ?? signal} before the run had ended`)
      }
      if (--running === 0) finish()
    })
    give()
  }
  return promise
}

/** Returns a seed from the current time, which changes every second. */
function seedOfDate(): number {
  return Math.floor(Date.now() / 1000) * 1000
}

/** Parses the flags. Returns null after it has printed an error message. */
function readFlags() {
  try {
    const flags = parseArgs({
      allowPositionals: true,
      options: {
        'seed': { type: 'string' }, 'seeds': { type: 'string' }, 'from': { type: 'string' },
        'minutes': { type: 'string' },
        'workers': { type: 'string' }, 'verbose': { type: 'boolean' }, 'keep-going': { type: 'boolean' },
        'planted': { type: 'boolean' }, 'swarm': { type: 'boolean' },
        'plant': { type: 'string' }, 'minimise': { type: 'boolean' }, 'only': { type: 'string' },
        'hashes': { type: 'boolean' },
        'worker': { type: 'boolean' }, 'help': { type: 'boolean' },
      },
    })
    for (const name of ['seed', 'seeds', 'from', 'minutes', 'workers'] as const) {
      const text = flags.values[name]
      if (text !== undefined && !(Number(text) >= 0)) throw new Error(`--${name} ${text}: only a number is allowed`)
    }
    return flags
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`)
    return null
  }
}

async function main(): Promise<number> {
  const flags = readFlags()
  if (flags === null) return usageError
  const { positionals, values } = flags
  if (values.help) {
    console.log(usage)
    return 0
  }
  if (values.planted) {
    return findPlanted({
      only: positionals[0], swarm: values.swarm ?? false, ...(values.from && { from: Number(values.from) }),
      ...(values.seeds && { seedsMax: Number(values.seeds) }),
    })
  }
  const from = values.from ?? (values.seeds === undefined && values.minutes === undefined ? undefined : values.seed)
  if (values.seed !== undefined && values.minimise) return printMinimised(Number(values.seed), values.plant)
  if (values.seed !== undefined && values.seeds === undefined && values.minutes === undefined) {
    return one(Number(values.seed), values.verbose ?? false, {
      ...(values.only && { only: new Set(values.only.split(',')) }),
      ...(values.plant && { plant: plantNamed(values.plant).plant() }),
    })
  }
  if (values.seeds === undefined && values.minutes === undefined) {
    console.error(usage)
    return usageError
  }
  return campaign({
    from: from === undefined ? seedOfDate() : Number(from),
    seedsMax: values.seeds === undefined ? Infinity : Number(values.seeds),
    untilMs: values.minutes === undefined ? Infinity : performance.now() + Number(values.minutes) * 60_000,
    workers: values.workers === undefined ? workersDefault : Number(values.workers),
    keepGoing: values['keep-going'] ?? false,
    hashes: values.hashes ?? false,
  })
}

if (process.argv.includes('--worker')) work()
else process.exitCode = await main()
