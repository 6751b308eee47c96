/** Creates the system databases when a single node starts (`couchdb/single_node`). */
import { sleep, type Clock, type Log } from '@sectional/runtime'
import { noOrigin } from '../audit/audit.ts'
import { createDatabases, isCluster, systemDatabases, type SetupServices } from './system-databases.ts'

/** Milliseconds between two attempts. A node that starts may need a second or two until it accepts writes. */
const retryMs = 500

export interface SingleNodeSetupParts extends SetupServices {
  readonly clock: Clock
  readonly log: Log
}

export class SingleNodeSetup {
  readonly #parts: SingleNodeSetupParts
  readonly #abort = new AbortController()
  readonly #done: Promise<void>

  constructor(parts: SingleNodeSetupParts) {
    this.#parts = parts
    this.#done = parts.options.singleNode ? this.#run() : Promise.resolve()
  }

  async stop(): Promise<void> {
    this.#abort.abort()
    await this.#done
  }

  async #run(): Promise<void> {
    const { clock, control, log } = this.#parts
    const { signal } = this.#abort
    for (; !signal.aborted; await sleep(clock, retryMs, signal)) {
      if (control.writesRefusedReason() !== null) continue
      if (isCluster(this.#parts)) {
        return log.warn({ option: 'couchdb/single_node' }, 'the option has no effect: the cluster has other nodes')
      }
      try {
        return await createDatabases(systemDatabases, noOrigin, this.#parts)
      } catch (error) {
        log.warn({ error: String(error) }, 'the system databases could not be created; trying again')
      }
    }
  }
}
