import type { DatabaseRecord } from '@sectional/cluster'
import type { User } from '../request/user.ts'

/** A changes feed that waits for changes. */
export interface OpenFeed {
  readonly database: DatabaseRecord
  /** The user who opened the feed, with the roles of that time. */
  readonly user: User
  /** The header with which the user came. */
  readonly authorization: string | undefined
  /** Ends the feed with a complete response. */
  end(): void
}
