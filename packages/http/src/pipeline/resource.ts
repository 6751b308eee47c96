/** The types of the route table. */
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

export type Handler = (request: RequestContext, services: Services) => void | Promise<void>

/** Who may use a resource. Handlers check what a single method requires beyond that. */
export type Access =
  | 'public'
  | 'server-admin'
  /** Server administrators and users with the role `_metrics`. */
  | 'metrics'
  /** Everybody when `chttpd/admin_only_all_dbs` is false, otherwise server administrators. */
  | 'database-list'
  | 'authenticated'
  /** Members of the database. */
  | 'member'
  /** Administrators of the database; everybody else gets 401. */
  | 'maintenance'

export interface Resource {
  /** Label of the resource in metrics and logs. */
  readonly name: string
  readonly access: Access
  /** The Allow header of a 405 response, in the order that CouchDB's clients know. */
  readonly allow: string
  /** Prefix of the first parameter that completes it to a document id. */
  readonly idPrefix?: string
  /** Handlers by method. HEAD uses the handler of GET; `*` matches every method. */
  readonly methods: Readonly<Record<string, Handler>>
}
