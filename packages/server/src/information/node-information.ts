/**
 * The information that a node gives about itself (docs/reference/cluster-and-nodes.md). It contains only what the
 * process and its metrics actually measure.
 */
import type { ControlPlane, RefillTask } from '@sectional/cluster'
import type { NodeInformation } from '@sectional/http'
import { formatRange, type JsonObject } from '@sectional/core'
import type { Runtime } from '@sectional/runtime'
import type { HostedReplicas } from '../hosting/hosted-replicas.ts'
import { describeCompaction, describeIndexBuild, describeRefill } from './active-tasks.ts'
import { statisticsTree } from './statistics.ts'

export interface NodeInformationParts {
  readonly runtime: Runtime
  readonly control: ControlPlane
  readonly version: string
  readonly hosted: HostedReplicas
  /** The anti-entropy passes that are filling replicas of this node now. */
  readonly refills: () => readonly RefillTask[]
}

/** Milliseconds for one question to one local replica. */
const replicaTimeoutMs = 60_000

/** The digests that the password hashes of administrators may use. */
const supportedHashes = ['sha', 'sha224', 'sha256', 'sha384', 'sha512']

export function createNodeInformation(
  { runtime, control, version, hosted, refills }: NodeInformationParts,
): NodeInformation {
  collectProcessMetrics(runtime, control)
  return {
    version,
    activeTasks: () => [
      ...hosted.compactions().map(task => describeCompaction(control, task)),
      ...hosted.indexBuilds().map(task => describeIndexBuild(control, task)),
      ...refills().map(task => describeRefill(control, task)),
    ],
    statistics: async () => statisticsTree(await runtime.metrics.samples(), {
      openFiles: runtime.machine.openFiles(), replicas: hosted.shards().length,
    }),
    system: async () => {
      const memory = runtime.machine.memory()
      return {
        uptime: Math.floor(runtime.machine.uptime()),
        memory: {
          resident: memory.residentBytes, heap_used: memory.heapUsedBytes, heap_total: memory.heapTotalBytes,
          external: memory.externalBytes,
        },
        open_files: runtime.machine.openFiles(),
        versions: runtime.machine.versions(),
      }
    },
    prometheus: () => runtime.metrics.render(),
    versions: () => {
      const { node, v8, icu } = runtime.machine.versions()
      return {
        erlang: { version: `none: this is Node.js ${node}`, supported_hashes: supportedHashes },
        collation_driver: { name: 'libicu', library_version: icu },
        javascript_engine: { name: 'v8', version: v8 },
      }
    },
    replicas: database => describeReplicas(control, hosted, database),
    seeds: () => Object.fromEntries(Object.keys(control.state()?.nodes ?? {}).filter(name => name !== control.node)
      .map(name => [name, { connected: control.connectedNodes().includes(name) }])),
  }
}

function collectProcessMetrics(runtime: Runtime, control: ControlPlane): void {
  const { metrics, machine } = runtime
  const resident = metrics.gauge('sectional_process_resident_bytes', 'Resident memory')
  const heap = metrics.gauge('sectional_process_heap_used_bytes', 'JavaScript heap in use')
  const uptime = metrics.gauge('sectional_process_uptime_seconds', 'Seconds since the process started')
  const openFiles = metrics.gauge('sectional_process_open_files', 'Open file descriptors')
  const delay = metrics.gauge(
    'sectional_event_loop_delay_seconds', 'Delay of the event loop since the last collection', ['statistic'],
  )
  const members = metrics.gauge(
    'sectional_membership_nodes', 'Members of the cluster, and those this node has a link with', ['nodes'],
  )
  metrics.onCollect(() => {
    const memory = machine.memory()
    resident.set(memory.residentBytes)
    heap.set(memory.heapUsedBytes)
    uptime.set(machine.uptime())
    const files = machine.openFiles()
    if (files !== null) openFiles.set(files)
    const { mean, p99 } = machine.eventLoopDelay()
    delay.set(mean, { statistic: 'mean' })
    delay.set(p99, { statistic: 'p99' })
    members.set(Object.keys(control.state()?.nodes ?? {}).length, { nodes: 'cluster_nodes' })
    members.set(control.connectedNodes().length, { nodes: 'all_nodes' })
  })
}

/** The digest covers the leaves of all documents, so equal digests mean that the replicas have equal leaves. */
async function describeReplicas(
  control: ControlPlane, hosted: HostedReplicas, database: string,
): Promise<readonly JsonObject[]> {
  const record = control.state()?.databases.get(database)
  const shards = record?.shards.filter(shard => shard.replicas.some(replica => replica.node === control.node)) ?? []
  return Promise.all(shards.map(async ({ range, replicas }) => {
    const replica = hosted.replicaOrAbsent({ incarnation: record!.incarnation, range })
    const info = await replica.upkeep.replicaInfo({ timeoutMs: replicaTimeoutMs })
    const [digest] = await replica.upkeep.digestDocuments(1, { timeoutMs: replicaTimeoutMs })
    return {
      node: control.node,
      range: formatRange(range),
      filling: replicas.some(({ node, filling }) => node === control.node && filling),
      catching_up: info.catchingUp,
      history: info.history,
      sequence: info.sequence,
      document_count: info.documentCount,
      deleted_count: info.deletedCount,
      sizes: info.sizes,
      digest,
    }
  }))
}
