import { join } from 'node:path'
import { defaultValues, type OptionValues } from '@sectional/core/options'
import { FileBlobStorage } from './blobs/blob-store-files.ts'
import { RealClock } from './clock/clock-real.ts'
import { ZlibCompression } from './compression/compression-zlib.ts'
import { NodeHttpClient } from './http/http-client-node.ts'
import { NodeHttpListener } from './http/http-listener-node.ts'
import type { NodeHttpListenerOptions } from './http/http-listener-node.ts'
import type { Log } from './log/log.ts'
import { PinoLog } from './log/log-pino.ts'
import type { PinoLogOptions } from './log/log-pino.ts'
import { NodeAppendFiles } from './files/append-files-node.ts'
import { closeDirectory, makeDirectory } from './files/make-directory.ts'
import { RealMachine } from './machine/machine-real.ts'
import { PrometheusMetrics } from './metrics/metrics-prom.ts'
import { WebSocketNetwork } from './network/network-ws.ts'
import type { WebSocketNetworkOptions } from './network/network-ws.ts'
import { RealRandom } from './random/random-real.ts'
import type { Runtime } from './runtime.ts'
import { IsolateSandbox } from './sandbox/sandbox-isolates.ts'
import { sandboxDeclarations, sandboxLimits } from './sandbox/sandbox-options.ts'
import { LevelStorage } from './storage/storage-level.ts'
import { storageMetrics } from './storage/storage-metrics.ts'
import { Turns } from './clock/turns.ts'

export interface RealRuntimeOptions {
  /**
   * The directory of all data of the node. It is created when it is missing, readable by its owner only. If it exists,
   * its rights are not changed, because it may have other files, but those of the folders in it with the data are.
   */
  readonly dataDirectory: string
  /** The folder to which the paths of `appendFiles` refer; the data directory by default. */
  readonly folder?: string
  readonly log: PinoLogOptions
  /** Options of the links between nodes. */
  readonly network?: WebSocketNetworkOptions
  readonly http?: NodeHttpListenerOptions
  /** Limits of functions of design documents. */
  readonly sandbox?: Partial<OptionValues<typeof sandboxDeclarations>>
}

export interface RealRuntime extends Runtime {
  /**
   * Closes sockets and listeners that are still open and ends the sandbox's processes; resolves when the log is
   * written. Stores are closed by the code that opened them.
   */
  close(): Promise<void>
}

/** @throws Error when the data directory cannot be created */
export function createRealRuntime(options: RealRuntimeOptions): RealRuntime {
  makeDirectory(options.dataDirectory)
  const clock = new RealClock()
  const turns = new Turns(clock)
  const metrics = new PrometheusMetrics()
  const network = new WebSocketNetwork(options.network)
  const log = PinoLog.create(options.log)
  const stores = join(options.dataDirectory, 'stores')
  const blobs = join(options.dataDirectory, 'blobs')
  for (const folder of [stores, blobs]) closeOrWarn(folder, log)
  const machine = new RealMachine()
  const http = new NodeHttpListener({ descriptors: machine.openFilesMax(), ...options.http })
  const httpClient = new NodeHttpClient()
  const sandbox = new IsolateSandbox({
    clock, log, metrics,
    limits: sandboxLimits({ ...defaultValues(sandboxDeclarations), ...options.sandbox }, machine.cores()),
  })
  return {
    clock,
    turns,
    random: new RealRandom(),
    storage: new LevelStorage({ directory: stores, observer: storageMetrics(metrics, clock) }),
    blobs: new FileBlobStorage(blobs),
    compression: new ZlibCompression(turns),
    appendFiles: new NodeAppendFiles(options.folder ?? options.dataDirectory),
    network,
    http,
    httpClient,
    sandbox,
    log,
    metrics,
    machine,
    close: async () => {
      http.revoke()
      httpClient.revoke()
      network.revoke()
      sandbox.close()
      machine.close()
      await log.close()
    },
  }
}

/** Keeps other accounts of the machine from a folder, or warns that they are not kept from it. */
function closeOrWarn(folder: string, log: Log): void {
  try {
    closeDirectory(folder)
  } catch (error) {
    log.warn({ folder, error: String(error) },
      'other accounts of this machine may read this folder of data, and this process is not permitted to change that')
  }
}
