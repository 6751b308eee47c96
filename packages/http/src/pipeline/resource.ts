/** What the route table is made of. */
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

export type Handler = (request: RequestContext, services: Services) => void | Promise<void>

/** Who may come in; what a single method needs beyond that, its handler checks. */
export type Access =
  | 'public'
  | 'server-admin'
  /** Server administrators and the role `_metrics`. */
  | 'metrics'
  /** Open to all when `chttpd/admin_only_all_dbs` is false. */
  | 'database-list'
  | 'authenticated'
  /** Members of the database. */
  | 'member'
  /** Administrators of the database; everybody else gets 401. */
  | 'maintenance'

export interface Resource {
  /** Label in metrics and logs. */
  readonly name: string
  readonly access: Access
  /** The Allow header of a 405, in the order that clients know. */
  readonly allow: string
  /** Goes before the first parameter, which then is a whole document id. */
  readonly idPrefix?: string
  /** By method; HEAD runs as GET. `*` answers every method. */
  readonly methods: Readonly<Record<string, Handler>>
}
