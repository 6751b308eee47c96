/** Checks one target in a thread, until its time has passed or an input violates the property. */
import { parentPort, workerData } from 'node:worker_threads'
import { checkSeed, type Finding } from './fuzz-target.ts'
import { fuzzTargets } from './target-table.ts'

export interface WorkerJob {
  readonly target: string
  readonly seed: number
  readonly path?: string
  readonly milliseconds: number
  /** The seed that is being checked, for the case that the thread never answers. */
  readonly progress: Int32Array<SharedArrayBuffer>
}

export interface WorkerReport { readonly seeds: number; readonly finding: Finding | null }

async function run({ target, seed, path, milliseconds, progress }: WorkerJob): Promise<WorkerReport> {
  const chosen = fuzzTargets.find(({ name }) => name === target)!
  const end = performance.now() + milliseconds
  for (let seeds = 0; ; seeds++) {
    Atomics.store(progress, 0, seed + seeds)
    const check = (input: unknown): void | Promise<void> => {
      Atomics.add(progress, 1, 1)
      return chosen.check(input)
    }
    const finding = await checkSeed({ ...chosen, check }, seed + seeds, path === undefined ? {} : { path })
    if (finding !== null || path !== undefined || performance.now() >= end) return { seeds: seeds + 1, finding }
  }
}

parentPort!.postMessage(await run(workerData as WorkerJob))
