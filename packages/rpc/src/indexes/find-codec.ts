/** Encodes the verb `find` of `IndexReplica` as the messages of proto/indexes.proto. */
import type { FindProgress, FindRequest, FindRow, FindSource, FoundDocument, indexVerbs } from '@sectional/core'
import type { CodecOf } from '../schema/codec.ts'
import type { PayloadWriter } from '../schema/payload.ts'
import { count, optionalLimit, ProtocolError } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'
import { decodeAttachments, decodeBound, decodeLeaves, encodeAttachments } from '../shard/record-codec.ts'
import {
  addKey, decodeHead, decodeKey, decodePlace, decodeRead, encodeHead, encodeKey, encodePlace, encodeRead, takeKey,
} from './index-record-codec.ts'

export const findCodec: CodecOf<typeof indexVerbs.find> = {
  since: 4,
  rows: 'found',
  encodeRequest: ({ selector, source, descending, after, limit, documents, countOnly, aggregate, isExact }) => ({
    selector,
    ...(source.kind === 'index'
      ? { index: encodeRead({ ...source, descending, ...(limit !== undefined && { limit }) }) }
      : { documents: { start: source.start, end: source.end, descending, limit: optionalLimit(limit) } }),
    after: after && encodePlace(after),
    body: documents !== 'none',
    leaves: documents === 'leaves',
    countOnly,
    aggregate,
    exact: isExact,
    within: source.kind === 'index' && source.within
      ? { index: source.within.index, key: encodeKey(source.within.key) }
      : undefined,
  }),
  decodeRequest: message => {
    const { selector, source, index, documents, after, body, leaves, countOnly, aggregate, within, exact } = message
    const place = after && decodePlace(after)
    return {
      selector,
      ...(source === 'index' ? decodeIndexSource(decodeRead(index, place), within) : decodeDocumentsSource(documents)),
      ...(place && { after: place }),
      documents: leaves ? 'leaves' : body ? 'winner' : 'none',
      ...(countOnly && { countOnly: true }),
      ...(aggregate !== null && { aggregate }),
      ...(exact && { isExact: true }),
    }
  },
  encodeRow: (row, payload) => {
    switch (row.kind) {
      case 'head': return encodeHead(row)
      case 'progress':
        return { ...encodeRowPlace(row, payload), progress: row, groupsLength: payload.addOptional(row.groups) }
      case 'found': return encodeFound(row, payload)
    }
  },
  decodeRow: (message, payload): FindRow => {
    if (message.head !== null) return decodeHead(message.head)
    const place = { range: message.range, key: takeKey(message.keyLength, payload), id: message.id,
      number: message.number }
    if (message.progress !== null) {
      const groups = payload.takeOptional(message.groupsLength)
      return { kind: 'progress', ...place, ...decodeNumbers(message.progress), ...(groups && { groups }) }
    }
    const value = payload.take(message.valueLength)
    const body = payload.takeOptional(message.bodyLength)
    return {
      kind: 'found', ...place, value,
      ...(message.revision !== null && { revision: message.revision }),
      ...(body && { body }),
      ...decodeAttachments(message),
      ...(message.leaves && { leaves: decodeLeaves(message.leaves.leaves) }),
    }
  },
}

type Source = Pick<FindRequest, 'source' | 'descending' | 'limit'>

function decodeIndexSource(
  { index, through, ranges, descending, limit }: ReturnType<typeof decodeRead>, within: WireMessage | null,
): Source {
  const source: FindSource = {
    kind: 'index', index, through, ranges,
    ...(within && { within: { index: within.index, key: decodeKey(within.key) } }),
  }
  return { source, descending, ...(limit !== undefined && { limit }) }
}

function decodeDocumentsSource(message: WireMessage | null): Source {
  if (message === null) throw new ProtocolError('a request to find documents has no source')
  const start = decodeBound(message.start)
  const end = decodeBound(message.end)
  return {
    source: { kind: 'documents', ...(start && { start }), ...(end && { end }) },
    descending: message.descending,
    ...(message.limit !== null && { limit: message.limit }),
  }
}

function encodeRowPlace({ range, key, id, number }: FindProgress | FoundDocument, payload: PayloadWriter): object {
  return { range, keyLength: addKey(key, payload), id, number }
}

function encodeFound(row: FoundDocument, payload: PayloadWriter): object {
  return {
    ...encodeRowPlace(row, payload),
    valueLength: payload.add(row.value),
    revision: row.revision,
    bodyLength: payload.addOptional(row.body),
    attachments: encodeAttachments(row.attachments),
    leaves: row.leaves && { leaves: row.leaves },
  }
}

function decodeNumbers(message: WireMessage): Pick<FindProgress, 'keysExamined' | 'documentsExamined' | 'matches'> {
  return {
    keysExamined: count(message.keysExamined, 'number of examined keys'),
    documentsExamined: count(message.documentsExamined, 'number of examined documents'),
    matches: count(message.matches, 'number of matches'),
  }
}
