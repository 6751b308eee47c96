/** Parameters of `_changes` (docs/reference/changes.md#get-post-db_changes). */
import { ApiError, decodeSinceToken, type Since } from '@sectional/core'
import { readInteger, type Query } from '../request/query.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

export type FeedKind = 'normal' | 'longpoll' | 'continuous' | 'eventsource'

export interface ChangesParameters {
  readonly feed: FeedKind
  readonly since: Exclude<Since, { readonly kind: 'malformed' }>
  readonly limit: number | null
  readonly descending: boolean
  /** Whether `changes` lists every leaf or only the winner. */
  readonly allLeaves: boolean
  readonly includeDocs: boolean
  readonly conflicts: boolean
  /** Whether included documents contain the content of attachments, and how it is stored. */
  readonly attachments: boolean
  readonly encodingInfo: boolean
  /** Milliseconds between heartbeats. null: the feed has no heartbeats and ends after its timeout. */
  readonly heartbeatMs: number | null
  readonly timeoutMs: number
  /** One row in this many carries a since-token; null: every row does. */
  readonly sequenceInterval: number | null
}

const feeds: Readonly<Record<string, FeedKind>> = {
  normal: 'normal', longpoll: 'longpoll', continuous: 'continuous', live: 'continuous', eventsource: 'eventsource',
}
const defaultHeartbeatMs = 60_000

/** @throws ApiError `bad_request` */
export function changesParameters(request: RequestContext, services: Services): ChangesParameters {
  const query = request.query.lowerCase()
  const feed = feedOf(query)
  const descending = query.flag('descending')
  const style = query.get('style') ?? 'main_only'
  if (style !== 'main_only' && style !== 'all_docs') {
    throw new ApiError('bad_request', 'Supported `style` values: main_only, all_docs')
  }
  return {
    feed,
    // A descending feed always starts at the newest change, whatever `since` is.
    since: readSince(descending ? '0' : sinceOf(query, request, feed)),
    limit: integer(query, 'limit'),
    descending,
    allLeaves: style === 'all_docs',
    includeDocs: query.flag('include_docs'),
    conflicts: query.flag('conflicts'),
    attachments: query.flag('attachments'),
    encodingInfo: query.flag('att_encoding_info'),
    heartbeatMs: heartbeatOf(query),
    timeoutMs: Math.min(integer(query, 'timeout') ?? Infinity, services.options.changesTimeoutMs),
    sequenceInterval: sequenceIntervalOf(query),
  }
}

/**
 * Parameters of `_db_updates` (docs/reference/changes.md#get-_db_updates).
 * @throws ApiError `bad_request`
 */
export function databaseUpdatesParameters(request: RequestContext, services: Services): ChangesParameters {
  const { query } = request
  const kind = query.get('feed') ?? 'normal'
  if (kind === 'live' || !Object.hasOwn(feeds, kind)) {
    throw new ApiError('bad_request', 'Supported `feed` types: normal, continuous, longpoll, eventsource')
  }
  const feed = feeds[kind]!
  const asked = query.get('heartbeat')
  const heartbeat = asked === 'true' ? defaultHeartbeatMs : asked === 'false' ? null : strictInteger(query, 'heartbeat')
  return {
    feed, heartbeatMs: heartbeat === 0 ? null : heartbeat,
    since: readSince(query.get('since') ?? '0'),
    limit: strictInteger(query, 'limit'),
    timeoutMs: Math.min(strictInteger(query, 'timeout') ?? Infinity, services.options.changesTimeoutMs),
    descending: query.flag('descending'),
    allLeaves: false, includeDocs: false, conflicts: false, attachments: false, encodingInfo: false,
    sequenceInterval: null,
  }
}

function strictInteger(query: Query, name: string): number | null {
  const text = query.get(name)
  if (text === undefined) return null
  const value = readInteger(text)
  if (value === undefined || value < 0) throw new ApiError('bad_request', 'invalid_integer')
  return value
}

function feedOf(query: Query): FeedKind {
  const name = query.get('feed') ?? 'normal'
  if (!Object.hasOwn(feeds, name)) {
    throw new ApiError('bad_request', 'Supported `feed` types: normal, continuous, live, longpoll, eventsource')
  }
  return feeds[name]!
}

/**
 * Returns the since-token to start at. The header of a reconnecting EventSource is newer than its URL and takes
 * precedence; in the URL the last parameter counts.
 */
function sinceOf(query: Query, request: RequestContext, feed: FeedKind): string {
  const inHeader = feed === 'eventsource' ? request.header('last-event-id') : undefined
  const inQuery = [...query.entries()].findLast(([name]) => name === 'since' || name === 'last-event-id')
  return inHeader ?? inQuery?.[1] ?? '0'
}

function readSince(text: string): ChangesParameters['since'] {
  const since = decodeSinceToken(text)
  if (since.kind === 'malformed') throw new ApiError('bad_request', "Malformed sequence supplied in 'since' parameter.")
  return since
}

function heartbeatOf(query: Query): number | null {
  const text = query.get('heartbeat')
  if (text === undefined) return null
  if (text === 'true') return defaultHeartbeatMs
  const value = readInteger(text)
  if (value === undefined) {
    throw new ApiError('bad_request', 'Invalid heartbeat value. Expecting a positive integer value (in milliseconds).')
  }
  if (value <= 0) {
    throw new ApiError('bad_request', 'The heartbeat value should be a positive integer (in milliseconds).')
  }
  return value
}

function sequenceIntervalOf(query: Query): number | null {
  const text = query.get('seq_interval')
  if (text === undefined) return null
  const value = readInteger(text)
  if (value === undefined || value <= 0) throw new ApiError('bad_request', 'invalid_seq_interval')
  return value
}

function integer(query: Query, name: string): number | null {
  const text = query.get(name)
  if (text === undefined) return null
  const value = readInteger(text)
  if (value === undefined || value < 0) {
    throw new ApiError('bad_request', `The \`${name}\` value should be a non-negative integer.`)
  }
  return value
}
