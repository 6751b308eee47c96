import type { LogEntry, RaftMessage } from '@sectional/core'
import type { PayloadReader, PayloadWriter } from '../schema/payload.ts'
import { count, ProtocolError } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'

const entryKinds: readonly LogEntry['kind'][] = ['command', 'configuration', 'noop']

/** Encodes a message as a `Raft` header. The payloads of log entries and the state of a snapshot go into `payload`. */
export function encodeRaft(message: RaftMessage, payload: PayloadWriter): object {
  const { from, to, term } = message
  switch (message.type) {
    case 'vote-request': return { from, to, term, voteRequest: message }
    case 'vote-reply': return { from, to, term, voteReply: message }
    case 'append':
      return {
        from, to, term, append: { ...message, entries: message.entries.map(entry => encodeEntry(entry, payload)) },
      }
    case 'append-reply': return { from, to, term, appendReply: message }
    case 'snapshot': {
      const {
        index, snapshotTerm, configuration: { voters, learners }, state, offset, totalBytes, checksum, round,
      } = message
      payload.add(state)
      return {
        from, to, term, snapshot: { index, snapshotTerm, voters, learners, offset, totalBytes, checksum, round },
      }
    }
    case 'snapshot-reply': return { from, to, term, snapshotReply: message }
  }
}

function encodeEntry(entry: LogEntry, payload: PayloadWriter): object {
  return {
    index: entry.index, term: entry.term, kind: entryKinds.indexOf(entry.kind),
    payloadLength: payload.add(entry.payload),
  }
}

/** @throws ProtocolError */
export function decodeRaft(wire: WireMessage, payload: PayloadReader): RaftMessage {
  const address = { from: wire.from as string, to: wire.to as string, term: count(wire.term, 'term') }
  const body: WireMessage = wire[wire.type] ?? {}
  switch (wire.type) {
    case 'voteRequest': return {
      ...address, type: 'vote-request', preVote: body.preVote,
      lastIndex: count(body.lastIndex, 'last index'), lastTerm: count(body.lastTerm, 'last term'),
    }
    case 'voteReply': return { ...address, type: 'vote-reply', granted: body.granted, preVote: body.preVote }
    case 'append': return {
      ...address, type: 'append',
      previousIndex: count(body.previousIndex, 'previous index'),
      previousTerm: count(body.previousTerm, 'previous term'),
      commit: count(body.commit, 'commit index'), round: count(body.round, 'round'),
      entries: body.entries.map((entry: WireMessage) => decodeEntry(entry, payload)),
    }
    case 'appendReply': return {
      ...address, type: 'append-reply', success: body.success, round: count(body.round, 'round'),
      matchIndex: count(body.matchIndex, 'match index'), conflictIndex: count(body.conflictIndex, 'conflict index'),
    }
    case 'snapshot': return {
      ...address, type: 'snapshot', round: count(body.round, 'round'),
      index: count(body.index, 'index'), snapshotTerm: count(body.snapshotTerm, 'snapshot term'),
      configuration: { voters: [...body.voters], learners: [...body.learners] },
      offset: count(body.offset, 'offset'),
      totalBytes: body.totalBytes === null ? payload.left : count(body.totalBytes, 'total bytes'),
      checksum: body.checksum === null ? null : count(body.checksum, 'checksum'),
      state: payload.rest(),
    }
    case 'snapshotReply': return {
      ...address, type: 'snapshot-reply', index: count(body.index, 'index'),
      received: count(body.received, 'received bytes'), round: count(body.round, 'round'),
    }
    default: throw new ProtocolError('a consensus message of unknown type')
  }
}

function decodeEntry(entry: WireMessage, payload: PayloadReader): LogEntry {
  const kind = entryKinds[entry.kind]
  if (kind === undefined) throw new ProtocolError('a log entry of unknown kind')
  return {
    index: count(entry.index, 'index'), term: count(entry.term, 'term'), kind,
    payload: payload.take(entry.payloadLength),
  }
}
