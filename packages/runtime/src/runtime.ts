/**
 * All effects of a node, as one value (docs/architecture.md#packages). Production code receives a `Runtime` and uses
 * nothing else: no Date, timers, Math.random, node:fs, sockets or module-level state. A simulated crash revokes the
 * value; code that still holds it has no effect any more.
 */
import type { Clock } from './clock/clock.ts'
import type { Random } from './random/random.ts'
import type { BlobStorage } from './blobs/blob-store.ts'
import type { AppendFiles } from './files/append-files.ts'
import type { Compression } from './compression/compression.ts'
import type { Storage } from './storage/storage.ts'
import type { Network } from './network/network.ts'
import type { HttpClient } from './http/http-client.ts'
import type { HttpListener } from './http/http-listener.ts'
import type { Log } from './log/log.ts'
import type { Metrics } from './metrics/metrics.ts'
import type { Sandbox } from './sandbox/sandbox.ts'
import type { Machine } from './machine/machine.ts'
import type { Turns } from './clock/turns.ts'

export interface Runtime {
  readonly clock: Clock
  /** Divides long work of this node into slices. */
  readonly turns: Turns
  readonly random: Random
  readonly storage: Storage
  readonly blobs: BlobStorage
  readonly compression: Compression
  readonly appendFiles: AppendFiles
  readonly network: Network
  readonly http: HttpListener
  /** Requests to other servers than the nodes of the cluster. */
  readonly httpClient: HttpClient
  /** Runs functions of design documents. */
  readonly sandbox: Sandbox
  readonly log: Log
  readonly metrics: Metrics
  readonly machine: Machine
}
