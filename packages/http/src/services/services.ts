/** The services that route handlers use. One value exists for each `HttpApi`. */
import type { ControlPlane, Coordinator, DatabaseEvents, DesignDocument } from '@sectional/cluster'
import type { RepeatedLines, Runtime } from '@sectional/runtime'
import type { Audit } from '../audit/audit.ts'
import type { Admission } from '../request/admission.ts'
import type { CrossOriginHosts } from '../request/cross-origin-hosts.ts'
import type { Authenticator } from '../authentication/authenticator.ts'
import type { RequestAuthentication } from '../authentication/request-authentication.ts'
import type { Sessions } from '../authentication/sessions.ts'
import type { BatchWriter } from './batch-writer.ts'
import type { Feeds } from './feeds.ts'
import type { SharedCalls } from './shared-calls.ts'
import type { FilterCalls } from './filter-calls.ts'
import type { Configuration } from '../settings/configuration.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import type { NodeInformation } from '../settings/node-information.ts'
import type { UuidGenerator } from './uuid-generator.ts'

export interface Services {
  readonly runtime: Runtime
  readonly control: ControlPlane
  readonly coordinator: Coordinator
  /** Takes the place of `coordinator` in requests to the users database before it exists (`users/future-users`). */
  readonly futureCoordinator: Coordinator
  readonly databaseEvents: Pick<DatabaseEvents, 'open'>
  readonly configuration: Configuration
  readonly nodeInformation: NodeInformation
  /** Read options for each request, because some change while the node runs. */
  readonly options: HttpOptions
  /** The secret that all nodes of the cluster share; empty on a node without a cluster. */
  readonly clusterSecret: string
  readonly audit: Audit
  readonly admission: Admission
  readonly authentication: RequestAuthentication
  readonly authenticator: Authenticator
  readonly sessions: Sessions
  readonly crossOrigin: CrossOriginHosts
  readonly batches: BatchWriter
  readonly feeds: Feeds
  readonly filterCalls: FilterCalls
  readonly uuids: UuidGenerator
  /** Descriptions of databases for functions of design documents (`req.info`), by incarnation. */
  readonly descriptions: SharedCalls<object>
  /** Readings of design documents that the cache of this node lacks, by incarnation and id. */
  readonly designReadings: SharedCalls<DesignDocument>
  /** Log of disk failures, which would repeat with every request while a failure lasts. */
  readonly diskFailures: RepeatedLines
}
