/** `_active_tasks`. */
import { indexId, type JsonObject } from '@sectional/core'
import { sleep } from '@sectional/runtime'
import { askNode } from '../configuration/node-questions.ts'
import { sendJson } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { definitionsOf } from '../views/view-definitions.ts'

/** Milliseconds that the design documents of a database may take. Then the answer does not name them. */
const designDocumentsMs = 1000

/** Answers with the tasks of every node that responds, sorted by node and start time. */
export async function getActiveTasks(request: RequestContext, services: Services): Promise<void> {
  const answers = await Promise.all(services.control.connectedNodes().map(node => tasksOf(node, request, services)))
  sendJson(request, services, 200, await withDesignDocuments(answers.flat(), services))
}

async function tasksOf(node: string, request: RequestContext, services: Services): Promise<readonly JsonObject[]> {
  try {
    return await askNode(services, node, 'active-tasks', null) as readonly JsonObject[]
  } catch (error) {
    if (node === services.control.node) throw error
    services.runtime.log.warn(
      { requestId: request.requestId, peer: node, error: String(error) }, 'a node did not tell its tasks',
    )
    return []
  }
}

/**
 * Adds `design_document` to the builds of indexes: the first design document that needs the index. A build has none
 * when its index is not needed any more, and when the design documents cannot be read now.
 */
async function withDesignDocuments(tasks: readonly JsonObject[], services: Services): Promise<readonly JsonObject[]> {
  const databases = new Set(tasks.filter(({ index }) => index !== undefined).map(databaseOf))
  const names = new Map(await Promise.all(
    [...databases].map(async name => [name, await namesByIndex(name, services)] as const),
  ))
  return tasks.map(task => {
    const name = names.get(databaseOf(task))?.get(String(task['index']))
    return name === undefined ? task : { ...task, design_document: name }
  })
}

/** Returns the name of the database of a task, whose `database` is `shards/RANGE/NAME`. */
function databaseOf({ database }: JsonObject): string {
  return String(database).split('/').slice(2).join('/')
}

/** Returns the ids of the design documents of a database by the ids of the indexes that they need. Never rejects. */
async function namesByIndex(database: string, services: Services): Promise<ReadonlyMap<string, string>> {
  const { control, coordinator, runtime: { clock, log } } = services
  const names = new Map<string, string>()
  const record = control.state()?.databases.get(database)
  if (record === undefined) return names
  const answered = new AbortController()
  try {
    const documents = await Promise.race([
      coordinator.designDocuments(record), sleep(clock, designDocumentsMs, answered.signal),
    ])
    // The first document counts.
    for (const document of [...documents?.values() ?? []].toSorted((a, b) => a.id < b.id ? 1 : -1)) {
      for (const definition of definitionsOf(document, record)) names.set(indexId(definition), document.id)
    }
  } catch (error) {
    log.debug({ database, error: String(error) }, 'the design documents of running builds could not be read')
  } finally {
    answered.abort()
  }
  return names
}
