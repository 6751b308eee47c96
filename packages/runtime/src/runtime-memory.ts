import { MemoryBlobStorage } from './blobs/blob-store-memory.ts'
import { MemoryCompression } from './compression/compression-memory.ts'
import { MemoryAppendFiles } from './files/append-files-memory.ts'
import { ManualClock } from './clock/clock-manual.ts'
import type { Clock } from './clock/clock.ts'
import { RevocableClock } from './clock/clock-revocable.ts'
import { MemoryHttpClient } from './http/http-client-memory.ts'
import { MemoryHttpListener } from './http/http-listener-memory.ts'
import type { Log } from './log/log.ts'
import { MemoryLog } from './log/log-memory.ts'
import { MemoryMachine } from './machine/machine-memory.ts'
import { PrometheusMetrics } from './metrics/metrics-prom.ts'
import { MemoryNetworkHub } from './network/network-memory.ts'
import type { MemoryNetwork } from './network/network-memory.ts'
import { SeededRandom } from './random/random-seeded.ts'
import type { Random } from './random/random.ts'
import type { Runtime } from './runtime.ts'
import { MemorySandbox } from './sandbox/sandbox-memory.ts'
import { MemoryDisk, MemoryStorage } from './storage/storage-memory.ts'
import { Turns } from './clock/turns.ts'

/** Nodes of one process share `clock` and `hub`; a node that starts again after a crash uses the same `disk`. */
export interface MemoryRuntimeOptions {
  /** The node's name on the hub. */
  readonly node?: string
  readonly clock?: Clock
  readonly random?: Random
  readonly hub?: MemoryNetworkHub
  readonly disk?: MemoryDisk
  readonly log?: Log
}

export interface MemoryRuntime extends Runtime {
  readonly clock: RevocableClock
  readonly storage: MemoryStorage
  readonly blobs: MemoryBlobStorage
  readonly appendFiles: MemoryAppendFiles
  readonly network: MemoryNetwork
  readonly http: MemoryHttpListener
  readonly httpClient: MemoryHttpClient
  readonly disk: MemoryDisk
  /** Simulates a crash: unsynced writes are lost, timers never fire, and connections and listeners end, all at once. */
  revoke(): void
}

/**
 * Creates all effects of one node inside this process. A second call with the same disk simulates a restart of the
 * node.
 */
export function createMemoryRuntime(options: MemoryRuntimeOptions = {}): MemoryRuntime {
  const shared = options.clock ?? new ManualClock()
  const clock = new RevocableClock(shared)
  const hub = options.hub ?? new MemoryNetworkHub({ clock: shared })
  const disk = options.disk ?? new MemoryDisk(shared)
  const storage = new MemoryStorage(disk)
  const blobs = new MemoryBlobStorage(disk.blobs)
  const network = hub.network(options.node ?? 'node', clock)
  const http = new MemoryHttpListener(clock)
  return {
    clock,
    turns: new Turns(clock),
    random: options.random ?? new SeededRandom(1),
    storage,
    blobs,
    compression: new MemoryCompression(),
    appendFiles: new MemoryAppendFiles(),
    network,
    http,
    httpClient: new MemoryHttpClient(clock),
    sandbox: new MemorySandbox(),
    log: options.log ?? new MemoryLog(),
    metrics: new PrometheusMetrics(),
    machine: new MemoryMachine(clock),
    disk,
    revoke: () => {
      clock.revoke()
      storage.crash()
      blobs.crash()
      network.revoke()
      http.revoke()
    },
  }
}
