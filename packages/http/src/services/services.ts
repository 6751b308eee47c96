/** What route handlers work with; one value for the life of the API. */
import type { ControlPlane, Coordinator, DatabaseEvents } from '@sectional/cluster'
import type { RepeatedLines, Runtime } from '@sectional/runtime'
import type { Admission } from '../request/admission.ts'
import type { Authenticator } from '../authentication/authenticator.ts'
import type { Sessions } from '../authentication/sessions.ts'
import type { BatchWriter } from './batch-writer.ts'
import type { Feeds } from './feeds.ts'
import type { Configuration } from '../settings/configuration.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import type { NodeInformation } from '../settings/node-information.ts'
import type { UuidGenerator } from './uuid-generator.ts'

export interface Services {
  readonly runtime: Runtime
  readonly control: ControlPlane
  readonly coordinator: Coordinator
  readonly databaseEvents: Pick<DatabaseEvents, 'open'>
  readonly configuration: Configuration
  readonly nodeInformation: NodeInformation
  /** To be read for each request: some change while the node runs. */
  readonly options: HttpOptions
  /** What the nodes of the cluster share; empty: this node is alone. */
  readonly clusterSecret: string
  readonly admission: Admission
  readonly authenticator: Authenticator
  readonly sessions: Sessions
  readonly batches: BatchWriter
  readonly feeds: Feeds
  readonly uuids: UuidGenerator
  /** Failures of disks, which come with every request while they last. */
  readonly diskFailures: RepeatedLines
}
