/**
 * What a node remembers about itself, in the `control` store beside the consensus core's part. Keys: `i` its
 * identity, `d` + incarnation the intent to delete a database.
 */
import { lastKey, StorageError } from '@sectional/runtime'
import type { Random, Storage, Store, WriteBatch } from '@sectional/runtime'
import { DamagedControlStoreError, readJson, writeJson } from './control-records.ts'

export const controlStoreName = 'control'
const intentPage = 256
const clusterIdBytes = 16

/** On disk once the node belongs to a cluster; absent: it never did. */
export interface StoredIdentity { readonly clusterId: string; readonly node: string }

/** A deletion that a client was promised while the log was out of reach. */
export interface DeleteIntent { readonly name: string; readonly incarnation: string }

export class ControlStore {
  readonly store: Store

  constructor(store: Store) {
    this.store = store
  }

  /**
   * An old vote, or a log without its last entries, must not be taken for the newest: so the store is opened only when every write that
   * was acknowledged is there.
   * @throws DamagedControlStoreError, StorageError
   */
  static async open(storage: Storage): Promise<ControlStore> {
    try {
      return new ControlStore(await storage.open(controlStoreName, { watermarkMs: 0, onDamage: 'refuse' }))
    } catch (error) {
      if (error instanceof StorageError && error.code === 'corrupt') throw new DamagedControlStoreError(error.cause instanceof Error ? error.cause.message : error.message, { cause: error })
      throw error
    }
  }

  /** @throws DamagedControlStoreError */
  identity(): StoredIdentity | null {
    return readJson<StoredIdentity>('the node\'s identity', this.store.getSync(identityKey)) ?? null
  }

  /** Durable when resolved. `also` adds to the same atomic write. */
  writeIdentity(identity: StoredIdentity, also: (batch: WriteBatch) => void = () => {}): Promise<void> {
    return this.store.write(batch => {
      this.putIdentity(batch, identity)
      also(batch)
    })
  }

  /** Adds the identity to a batch. */
  putIdentity(batch: WriteBatch, identity: StoredIdentity): void { batch.put(identityKey, writeJson(identity)) }

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

export function newClusterId(random: Random): string { return Buffer.from(random.bytes(clusterIdBytes)).toString('hex') }

const identityKey = 'i'
const intentPrefix = 'd'

function intentKey(incarnation: string): string {
  return intentPrefix + incarnation
}
