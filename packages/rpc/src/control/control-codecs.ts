/** Encodes the verbs of `ControlPeer` as the messages of proto/verbs.proto. */
import { asBuffer, nodeQuestions } from '@sectional/core'
import type { controlVerbs } from '@sectional/core'
import { noReply, noRequest } from '../schema/codec.ts'
import type { CodecsOf } from '../schema/codec.ts'
import type { PayloadReader, PayloadWriter } from '../schema/payload.ts'
import { count, ProtocolError } from '../schema/schema.ts'

/** Appends a JSON value; `undefined` is encoded as no bytes. */
function encodeJson(value: unknown, payload: PayloadWriter): void {
  if (value !== undefined) payload.add(Buffer.from(JSON.stringify(value)))
}

function decodeJson(payload: PayloadReader): unknown {
  const text = asBuffer(payload.rest()).toString('utf8')
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new ProtocolError('the payload is not JSON', { cause: error })
  }
}

export const controlCodecs: CodecsOf<typeof controlVerbs> = {
  status: {
    ...noRequest,
    encodeReply: reply => reply,
    decodeReply: message => ({
      node: message.node,
      address: message.address,
      clusterId: message.clusterId,
      fresh: message.fresh,
      leader: message.leader,
    }),
  },
  join: {
    encodeRequest: request => request,
    decodeRequest: message => ({ node: message.node, address: message.address, zone: message.zone }),
    encodeReply: reply => {
      switch (reply.kind) {
        case 'admitted': return { admitted: reply.clusterId }
        case 'refused': return { refused: reply.reason }
        case 'outdated': return { outdated: {} }
        case 'try-later': return { tryLater: { leader: reply.leader } }
      }
    },
    decodeReply: message => {
      switch (message.kind) {
        case 'admitted': return { kind: 'admitted', clusterId: message.admitted }
        case 'refused': return { kind: 'refused', reason: message.refused }
        case 'outdated': return { kind: 'outdated' }
        case 'tryLater': return { kind: 'try-later', leader: message.tryLater.leader }
        default: throw new ProtocolError('a join reply of unknown kind')
      }
    },
  },
  propose: {
    encodeRequest: (command, payload) => { encodeJson(command, payload); return {} },
    decodeRequest: (_message, payload) => decodeJson(payload),
    encodeReply: (reply, payload) => {
      switch (reply.kind) {
        case 'applied': encodeJson(reply.result, payload); return { applied: { index: reply.index } }
        case 'not-leader': return { notLeader: { leader: reply.leader } }
        case 'timeout': return { timeout: {} }
      }
    },
    decodeReply: (message, payload) => {
      switch (message.kind) {
        case 'applied': {
          return { kind: 'applied', index: count(message.applied.index, 'index'), result: decodeJson(payload) }
        }
        case 'notLeader': return { kind: 'not-leader', leader: message.notLeader.leader }
        case 'timeout': return { kind: 'timeout' }
        default: throw new ProtocolError('a propose reply of unknown kind')
      }
    },
  },
  ask: {
    encodeRequest: ({ question, argument }, payload) => { encodeJson(argument, payload); return { question } },
    decodeRequest: (message, payload) => {
      const question = nodeQuestions.find(known => known === message.question)
      if (question === undefined) throw new ProtocolError('an unknown question')
      return { question, argument: decodeJson(payload) }
    },
    encodeReply: (answer, payload) => { encodeJson(answer, payload); return {} },
    decodeReply: (_message, payload) => decodeJson(payload),
  },
  designChanged: {
    since: 3,
    encodeRequest: incarnation => ({ incarnation }),
    decodeRequest: message => message.incarnation,
    ...noReply,
  },
}
