/** Encodes the verbs of `IndexReplica` as the messages of proto/indexes.proto. */
import type { indexVerbs } from '@sectional/core'
import { noReply } from '../schema/codec.ts'
import type { CodecsOf } from '../schema/codec.ts'
import { count, limit, ProtocolError } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import { findCodec } from './find-codec.ts'
import {
  addKey, decodeDefinition, decodeGroupPlace, decodeHead, decodePlace, decodeRead, decodeState, decodeThrough,
  encodeDefinition, encodeGroupPlace, encodeHead, encodePlace, encodeRead, encodeThrough, takeKey,
} from './index-record-codec.ts'

/** The first version of the protocol that has these verbs; `find` is later. */
const since = 3

export const indexCodecs: CodecsOf<typeof indexVerbs> = {
  buildIndex: {
    since,
    encodeRequest: ({ definition, through, waitMs }) => ({
      definition: encodeDefinition(definition), through: encodeThrough(through), waitMs,
    }),
    decodeRequest: message => ({
      definition: decodeDefinition(message.definition),
      through: decodeThrough(message.through),
      waitMs: decodeWait(message.waitMs),
    }),
    encodeReply: reply => ({ state: reply, through: reply.through }),
    decodeReply: message => ({ ...decodeState(message.state), through: count(message.through, 'required sequence') }),
  },
  scanIndex: {
    since,
    rows: 'indexRows',
    encodeRequest: request => ({ read: encodeRead(request), after: request.after && encodePlace(request.after) }),
    decodeRequest: ({ read, after }) => decodeRead(read, after && decodePlace(after)),
    encodeRow: (row, payload) => row.kind === 'head' ? encodeHead(row) : {
      range: row.range, keyLength: addKey(row.key, payload), id: row.id, number: row.number,
      valueLength: payload.add(row.value),
    },
    decodeRow: (message, payload) => message.head !== null ? decodeHead(message.head) : {
      kind: 'row', range: message.range, key: takeKey(message.keyLength, payload), id: message.id,
      number: message.number, value: payload.take(message.valueLength),
    },
  },
  reduceIndex: {
    since,
    rows: 'groups',
    encodeRequest: request => ({
      read: encodeRead(request),
      after: request.after && encodeGroupPlace(request.after),
      groupLevel: request.groupLevel === 'exact' ? undefined : limit(request.groupLevel),
    }),
    decodeRequest: ({ read, after, groupLevel }) => (
      { ...decodeRead(read, after && decodeGroupPlace(after)), groupLevel: groupLevel ?? 'exact' }),
    encodeRow: (row, payload) => row.kind === 'head' ? encodeHead(row) : {
      range: row.range, groupLength: addKey(row.group, payload), valueLength: payload.add(row.value),
    },
    decodeRow: (message, payload) => message.head !== null ? decodeHead(message.head) : {
      kind: 'group', range: message.range, group: takeKey(message.groupLength, payload),
      value: payload.take(message.valueLength),
    },
  },
  find: findCodec,
  indexInfo: {
    since,
    encodeRequest: index => ({ index }),
    decodeRequest: message => message.index,
    encodeReply: info => ({
      ...info,
      state: info,
      definition: encodeDefinition(info.definition),
      fileBytes: info.sizes.file,
      activeBytes: info.sizes.active,
      externalBytes: info.sizes.external,
    }),
    decodeReply: message => ({
      ...decodeState(message.state),
      definition: decodeDefinition(message.definition),
      building: message.building,
      waiting: count(message.waiting, 'number of waiting calls'),
      failedCount: count(message.failedCount, 'number of failing documents'),
      failures: message.failures.map(({ id, error }: WireMessage) => ({ id, error })),
      sizes: {
        file: count(message.fileBytes, 'size of an index'),
        active: count(message.activeBytes, 'size of an index'),
        external: count(message.externalBytes, 'size of an index'),
      },
    }),
  },
  dropIndexes: {
    since,
    encodeRequest: request => request,
    decodeRequest: message => ({ except: [...message.except] }),
    ...noReply,
  },
}

/** The milliseconds need not be an integer, because callers compute them from deadlines. A call does not wait for 0. */
function decodeWait(waitMs: number): number {
  if (Number.isNaN(waitMs)) throw new ProtocolError('the time to wait is not a number')
  return Math.max(waitMs, 0)
}
