/**
 * A node's records about itself, in the `control` store that also holds the state of the consensus core. Key `i` holds
 * the node's identity, `b` its starts, `o` the mark of a data directory that was given up (see `giveUp`), `d` +
 * incarnation the intent to delete a database.
 */
import type { PeerStart } from '@sectional/core'
import { lastKey, StorageError } from '@sectional/runtime'
import type { Random, Storage, Store, WriteBatch } from '@sectional/runtime'
import { DamagedControlStoreError, readJson, writeJson } from '../consensus/sealed-records.ts'
import { nextStart } from './node-start.ts'

export const controlStoreName = 'control'
const intentPage = 256
const clusterIdBytes = 16
const startIdBytes = 8

/** Present on disk once the node has belonged to a cluster. */
export interface StoredIdentity { readonly clusterId: string; readonly node: string }

/** A deletion that was promised to a client while the log could not be reached. */
export interface DeleteIntent { readonly name: string; readonly incarnation: string }

export class ControlStore {
  readonly store: Store

  constructor(store: Store) {
    this.store = store
  }

  /**
   * Opens the store only when every acknowledged write is there: the node must not take an old vote, or a log without
   * its last entries, for the newest.
   * @throws DamagedControlStoreError when data is missing or corrupt
   * @throws StorageError
   */
  static async open(storage: Storage): Promise<ControlStore> {
    try {
      return new ControlStore(await storage.open(controlStoreName, { watermarkMs: 0, onDamage: 'refuse' }))
    } catch (error) {
      if (error instanceof StorageError && error.code === 'corrupt') {
        throw new DamagedControlStoreError(error.cause instanceof Error ? error.cause.message : error.message, {
          cause: error,
        })
      }
      throw error
    }
  }

  /** @throws DamagedControlStoreError */
  identity(): StoredIdentity | null {
    return readJson<StoredIdentity>('the node\'s identity', this.store.getSync(identityKey)) ?? null
  }

  /** Writes the identity; durable when resolved. `also` adds its operations to the same atomic write. */
  writeIdentity(identity: StoredIdentity, also: (batch: WriteBatch) => void = () => {}): Promise<void> {
    return this.store.write(batch => {
      this.putIdentity(batch, identity)
      also(batch)
    })
  }

  /** Adds the identity to a batch. */
  putIdentity(batch: WriteBatch, identity: StoredIdentity): void { batch.put(identityKey, writeJson(identity)) }

  /**
   * Records a start of this node's process; durable when resolved.
   * @throws DamagedControlStoreError
   */
  async start(random: Random): Promise<PeerStart> {
    const start = nextStart(
      readJson<PeerStart>('the record of this node\'s starts', this.store.getSync(startsKey)),
      Buffer.from(random.bytes(startIdBytes)).toString('hex'),
    )
    await this.writeStart(start)
    return start
  }

  writeStart(start: PeerStart): Promise<void> {
    return this.store.write(batch => batch.put(startsKey, writeJson(start)))
  }

  /**
   * Removes the cluster's identity, the metadata log and the vote, and marks the replicas on this disk, in one atomic
   * write. Each replica must begin a new history before the node joins again, because the sequences after the copy was
   * made were already used. Promised deletions and the ids of starts are kept.
   */
  async giveUp(): Promise<void> {
    const keys: string[] = []
    const iterator = this.store.iterate({ gte: '', lt: lastKey }, { values: false })
    try {
      for (let page = await iterator.next(intentPage); page.length > 0; page = await iterator.next(intentPage)) {
        keys.push(...page.map(([key]) => key))
      }
    } finally {
      await iterator.close()
    }
    await this.store.write(batch => {
      for (const key of keys) if (!key.startsWith(intentPrefix) && key !== startsKey) batch.delete(key)
      batch.put(givenUpKey, writeJson({}))
    })
  }

  /**
   * True while the replicas on this disk still have the histories of a data directory that was given up.
   * @throws DamagedControlStoreError
   */
  givenUp(): boolean { return readJson('the mark of older replicas', this.store.getSync(givenUpKey)) !== undefined }

  forgetGivenUp(): Promise<void> { return this.store.write(batch => batch.delete(givenUpKey)) }

  async intents(): Promise<readonly DeleteIntent[]> {
    const iterator = this.store.iterate({ gte: intentPrefix, lt: intentPrefix + lastKey })
    const intents: DeleteIntent[] = []
    try {
      for (let page = await iterator.next(intentPage); page.length > 0; page = await iterator.next(intentPage)) {
        for (const [, value] of page) intents.push(readJson<DeleteIntent>('a promised deletion', value)!)
      }
    } finally {
      await iterator.close()
    }
    return intents
  }

  addIntent(intent: DeleteIntent): Promise<void> {
    return this.store.write(batch => batch.put(intentKey(intent.incarnation), writeJson(intent)))
  }

  removeIntent(incarnation: string): Promise<void> {
    return this.store.write(batch => batch.delete(intentKey(incarnation)))
  }
}

export function newClusterId(random: Random): string {
  return Buffer.from(random.bytes(clusterIdBytes)).toString('hex')
}

const identityKey = 'i'
const startsKey = 'b'
const givenUpKey = 'o'
const intentPrefix = 'd'

function intentKey(incarnation: string): string {
  return intentPrefix + incarnation
}
