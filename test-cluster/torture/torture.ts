/** One run: clients and faults against three real nodes, then rest, then the verdict of the history checker. */
import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkHistory } from '@sectional/simulator/history'
import { NamespaceNetwork } from '../src/namespace-network.ts'
import { TestCluster } from '../src/test-cluster.ts'
import { storeHistory, type TortureFinding } from './history-file.ts'
import { Nemesis, type Fault } from './nemesis.ts'
import { Recorder, type RecordedHistory } from './recorder.ts'
import { readAtRest } from './resting-state.ts'
import { SeededDraws } from './seeded-draws.ts'
import { createDatabase } from './torture-database.ts'
import { Workload } from './workload.ts'

const nodes = 3
const clients = 6
const progressMs = 10_000

export interface TortureOptions {
  readonly seed: number
  /** Duration of the workload in milliseconds, without the time until the cluster is at rest. */
  readonly ms: number
  /** Whether faults are injected. */
  readonly faults: boolean
  /** Kinds of faults that are left out; default: none. */
  readonly without?: readonly Fault[]
  /**
   * Whether each node has a network namespace and a disk of its own, so that packets are lost and disks are full. The
   * process must run in namespaces of its own (`runInNamespaces`).
   */
  readonly namespaces?: boolean
  readonly print: (line: string) => void
  /** Is called before the final reads. Tests destroy disks here. */
  readonly beforeRest?: (cluster: TestCluster) => Promise<void>
}

export interface TortureResult {
  readonly findings: readonly TortureFinding[]
  readonly history: RecordedHistory
  /** The folder with the history, the data of the nodes and their logs; undefined when there is no finding. */
  readonly folder?: string
}

/** Runs the workload and judges it. All processes have ended when it settles. */
export async function torture(options: TortureOptions): Promise<TortureResult> {
  const { seed, ms, faults, without, namespaces = false, print, beforeRest } = options
  const cluster = await TestCluster.start({
    nodes, ...namespaces && { network: new NamespaceNetwork(nodes), smallDisks: true },
  })
  const kill = (): void => {
    for (const { processId } of cluster.nodes) if (processId !== undefined) process.kill(processId, 'SIGKILL')
  }
  process.once('exit', kill)
  const startedMs = performance.now()
  const events: string[] = []
  const say = (line: string): void => {
    events.push(`${((performance.now() - startedMs) / 1000).toFixed(1)} s: ${line}`)
  }
  try {
    const draws = new SeededDraws(seed)
    const nemesis = new Nemesis(cluster, new SeededDraws(seed + 1), say, without)
    const recorder = new Recorder(() => nemesis.calmSinceMs)
    const workload = new Workload(cluster, draws, recorder)
    await createDatabase(cluster.node(1), draws.integer(1, 4))
    const progress = setInterval(() => {
      const done = Math.round((performance.now() - startedMs) / 1000)
      print(`${done} s: ${recorder.requests} requests, faults: ${counted(nemesis.counts)}`)
    }, progressMs)
    const untilMs = performance.now() + ms
    try {
      await Promise.all([
        ...Array.from({ length: clients }, () => workload.client(untilMs)), ...faults ? [nemesis.run(untilMs)] : [],
      ])
    } finally {
      clearInterval(progress)
    }
    await beforeRest?.(cluster)
    say('faults have ended')
    const atRest = await readAtRest(cluster, recorder)
    say('all replicas have been read')
    const history = recorder.history()
    const findings = [
      ...nemesis.problems.map(text => ({ rule: 'process', text })),
      ...workload.problems.map(text => ({ rule: 'internal-error', text })), ...atRest, ...checkHistory(history),
    ]
    const answers = counted(new Map([...workload.statuses].sort(([a], [b]) => a - b)))
    print(`${recorder.requests} requests, answers by status: ${answers}; faults: ${counted(nemesis.counts)}`)
    if (findings.length === 0) return { findings, history }
    return { findings, history, folder: await keep(cluster, seed, history, findings, events) }
  } finally {
    await cluster.close()
    process.off('exit', kill)
  }
}

/** Ends the nodes and copies what explains the findings to a new folder, which it returns. */
async function keep(
  cluster: TestCluster, seed: number, history: RecordedHistory, findings: readonly TortureFinding[],
  events: readonly string[],
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), `sectional-torture-${seed}-`))
  storeHistory(join(folder, 'history.json'), history)
  writeFileSync(join(folder, 'findings.json'), JSON.stringify(findings, null, 1))
  writeFileSync(join(folder, 'events.txt'), `${events.join('\n')}\n`)
  for (const node of cluster.nodes) {
    await node.crash()
    const copy = join(folder, `node${node.number}`)
    mkdirSync(copy)
    cpSync(node.folder, copy, { recursive: true })
  }
  return folder
}

function counted(counts: ReadonlyMap<string | number, number>): string {
  return [...counts].map(([name, count]) => `${name} ${count}`).join(', ') || 'none'
}
