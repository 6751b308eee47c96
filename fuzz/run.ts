/** `scripts/fuzz`: checks targets for a time, each in a thread of its own, and prints how to replay what they find. */
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { batchRuns, replayCommand, type Finding } from './fuzz-target.ts'
import { fuzzTargets } from './target-table.ts'
import type { WorkerJob, WorkerReport } from './worker.ts'

const usage = `scripts/fuzz --minutes N [--target NAME]...   checks all targets, or these, for N minutes together
scripts/fuzz ... --seed S                     begins with this seed; by default with one of the date
scripts/fuzz --target NAME --seed S --path P  repeats one input, as the line of a finding says
scripts/fuzz --list                           prints the targets and their properties
exit status: 0 nothing found, 1 an input violates a property, 2 wrong usage`

/** Megabytes of the heap of a thread. A target whose inputs need more has found unbounded memory. */
const heapMegabytesMax = 512
/** A single input that takes longer than this hangs. */
const inputMsMax = 30_000
const inputShownMax = 4000

async function check(job: Omit<WorkerJob, 'progress'>): Promise<WorkerReport> {
  const progress = new Int32Array(new SharedArrayBuffer(8))
  progress[0] = job.seed
  const worker = new Worker(new URL('worker.ts', import.meta.url), {
    workerData: { ...job, progress }, resourceLimits: { maxOldGenerationSizeMb: heapMegabytesMax },
  })
  const failed = (error: string): WorkerReport => ({
    seeds: progress[0]! - job.seed + 1,
    finding: { target: job.target, seed: progress[0]!, path: job.path ?? '', input: 'not known', error },
  })
  let inputs = 0
  const ended = Promise.withResolvers<WorkerReport>()
  const watch = setInterval(() => {
    const now = Atomics.load(progress, 1)
    if (now === inputs) ended.resolve(failed(`one input takes longer than ${inputMsMax / 1000} s`))
    inputs = now
  }, inputMsMax)
  worker.on('message', (report: WorkerReport) => { ended.resolve(report) })
  worker.on('error', error => { ended.resolve(failed(error.stack ?? String(error))) })
  try {
    return await ended.promise
  } finally {
    clearInterval(watch)
    await Promise.race([worker.terminate(), once(worker, 'exit')])
  }
}

function print(finding: Finding): void {
  console.log(`FOUND by ${finding.target}: ${finding.error}\n  input: ${finding.input.slice(0, inputShownMax)}`)
  console.log(`  replay: ${replayCommand(finding)}`)
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options: {
    minutes: { type: 'string' }, target: { type: 'string', multiple: true }, seed: { type: 'string' },
    path: { type: 'string' }, list: { type: 'boolean' }, help: { type: 'boolean' },
  } })
  if (values.list === true) {
    for (const { name, property } of fuzzTargets) console.log(`${name.padEnd(18)} ${property}`)
    return 0
  }
  const chosen = values.target ?? fuzzTargets.map(({ name }) => name)
  const unknown = chosen.find(name => !fuzzTargets.some(target => target.name === name))
  const minutes = Number(values.minutes ?? 0)
  const seed = values.seed === undefined ? Math.floor(Date.now() / 1000) % 1_000_000_000 : Number(values.seed)
  if (values.help === true || unknown !== undefined || !(minutes >= 0) || !Number.isInteger(seed)) {
    console.log(unknown === undefined ? usage : `there is no target ${unknown}\n${usage}`)
    return values.help === true ? 0 : 2
  }
  let found = 0
  for (const target of chosen) {
    const milliseconds = minutes * 60_000 / chosen.length
    const { seeds, finding } = await check({ target, seed, path: values.path, milliseconds })
    const inputs = values.path === undefined ? `${seeds * batchRuns} inputs of the seeds from ${seed} on` : 'one input'
    console.log(`${target}: ${inputs}${finding === null ? ', nothing found' : ''}`)
    if (finding !== null) print(finding)
    if (finding !== null) found++
  }
  return found === 0 ? 0 : 1
}

process.exitCode = await main()
