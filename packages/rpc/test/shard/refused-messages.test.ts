import assert from 'node:assert/strict'
import { controlCodecs } from '../../src/control/control-codecs.ts'
import { decodeRaft } from '../../src/control/raft-codec.ts'
import { PayloadReader } from '../../src/schema/payload.ts'
import { messageHeaderType, ProtocolError } from '../../src/schema/schema.ts'
import type { WireMessage } from '../../src/schema/schema.ts'
import { decodeBlobHash, decodeTrail } from '../../src/shard/record-codec.ts'
import { shardCodecs } from '../../src/shard/shard-codecs.ts'

const none = new Uint8Array()

/** Refuses the message, with this error. */
function refuses(reason: string, decode: () => unknown): void {
  assert.throws(decode, error => error instanceof ProtocolError && error.message === reason)
}

/** Returns the message of a reply as its codec receives it. */
function replied(verb: string, fields: object): WireMessage {
  return messageHeaderType.decode(messageHeaderType.encode({ reply: { [verb]: fields } })).reply[verb]
}

describe('messages that no node sends are refused', () => {
  const { openDocument, openRevisions, writeBlob } = shardCodecs
  const payload = (text = ''): PayloadReader => new PayloadReader(text === '' ? none : Buffer.from(text))

  it('in the replies of replicas', () => {
    refuses('a document without leaves', () =>
      openDocument.decodeReply(replied('openDocument', { snapshot: { sequence: 1 } }), payload()))
    const leaves = [{ revision: '1-a' }]
    const branch = { path: { start: 2, ids: ['b', 'a'] }, available: [true, true], tombstones: [true] }
    for (const branches of [[branch], [{ ...branch, available: [true], tombstones: [true, true] }]]) {
      refuses('a branch and its flags differ in length', () =>
        openDocument.decodeReply(replied('openDocument', { snapshot: { leaves, tree: { branches } } }), payload()))
    }
    refuses('an opened revision of unknown kind', () =>
      openRevisions.decodeReply(replied('openRevisions', { items: [{ revisions: [{}] }] }), payload()))
    refuses('a hash has 31 bytes, not 32', () =>
      writeBlob.decodeReply(replied('writeBlob', { hash: Buffer.alloc(31) }), payload()))
    assert.equal(decodeBlobHash(Buffer.alloc(32)), '00'.repeat(32))
  })

  it('in trails, whose points must ascend', () => {
    const trail = (...sequences: readonly number[]) => () => {
      const points = sequences.map((own, theirs) => ({ theirs, own }))
      return decodeTrail({ history: 'h', base: { theirs: 0, own: 0 }, points })
    }
    assert.equal(trail(3, 3, 4)().points.length, 3)
    refuses('the points of a trail are not in ascending order', trail(3, 2))
  })

  it('in the replies of control peers and in consensus', () => {
    const { ask, join, propose } = controlCodecs
    refuses('the payload is not JSON', () => ask.decodeReply(replied('ask', {}), payload('{')))
    refuses('a join reply of unknown kind', () => join.decodeReply(replied('join', {}), payload()))
    refuses('a propose reply of unknown kind', () => propose.decodeReply(replied('propose', {}), payload()))
    const raft = messageHeaderType.decode(messageHeaderType.encode({ raft: { from: 'a', to: 'b', term: 1 } })).raft
    refuses('a consensus message of unknown type', () => decodeRaft(raft, payload()))
  })
})
