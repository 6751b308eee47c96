/** One client of rxdb: a collection in memory that rxdb's CouchDB plugin replicates with the server. */
import { createRxDatabase, type RxCollection, type RxDatabase } from 'rxdb'
import {
  getFetchWithCouchDBAuthorization, replicateCouchDB, type RxCouchDBReplicationState,
} from 'rxdb/plugins/replication-couchdb'
import { getRxStorageMemory } from 'rxdb/plugins/storage-memory'
import { administrator } from './test-node.ts'

export interface Task { readonly id: string; readonly title: string; readonly done: boolean; readonly by: string }

const schema = {
  version: 0, primaryKey: 'id', type: 'object',
  properties: {
    id: { type: 'string', maxLength: 100 }, title: { type: 'string' }, done: { type: 'boolean' },
    by: { type: 'string' },
  },
  required: ['id', 'title', 'done', 'by'],
} as const
const batchSize = 60
const retryMs = 300

export class RxClient {
  readonly name: string
  readonly tasks: RxCollection<Task>
  readonly #database: RxDatabase<{ readonly tasks: RxCollection<Task> }>
  readonly #replication: RxCouchDBReplicationState<Task>

  private constructor(name: string, database: RxDatabase<{ readonly tasks: RxCollection<Task> }>, url: string) {
    this.name = name
    this.#database = database
    this.tasks = database.tasks
    const [user, password] = administrator.split(':') as [string, string]
    this.#replication = replicateCouchDB<Task>({
      replicationIdentifier: `tasks of ${name}`, collection: this.tasks, url, live: true, retryTime: retryMs,
      waitForLeadership: false,
      fetch: getFetchWithCouchDBAuthorization(user, password), pull: { batchSize, heartbeat: 10_000 },
      push: { batchSize },
    })
  }

  /** @param url URL of the server's database, without credentials, ending with a slash */
  static async open(name: string, url: string): Promise<RxClient> {
    const database = await createRxDatabase<{ readonly tasks: RxCollection<Task> }>({
      name: `rx-${name}`, storage: getRxStorageMemory(), multiInstance: false,
    })
    await database.addCollections({ tasks: { schema } })
    return new RxClient(name, database, url)
  }

  /** Waits until all changes that the client knows of are sent and fetched. */
  async synchronized(): Promise<void> {
    this.#replication.reSync()
    await this.#replication.awaitInSync()
  }

  async contents(): Promise<Task[]> {
    const found = await this.tasks.find().exec()
    return found.map(task => task.toJSON() as Task).sort((a, b) => a.id < b.id ? -1 : 1)
  }

  async close(): Promise<void> {
    await this.#replication.cancel()
    await this.#database.close()
  }
}
