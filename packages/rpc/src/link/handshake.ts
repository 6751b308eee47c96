/**
 * The handshake, in which both sides prove that they hold the cluster secret. It is implemented as two pure state
 * machines, which take a frame and return a frame or a decision. DESIGN.md has a drawing and the threat model. Each
 * proof is HMAC-SHA256 under the secret over the prover's role and the exact bytes of Hello and WelcomeCore, and so
 * over both nonces, identities and version ranges. A proof is therefore valid for one connection, one side and one
 * choice of version only.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { PeerIdentity, PeerStart } from '@sectional/core'
import type { FrameKey } from '../frame/frame-codec.ts'
import { certificateProblem } from './certified-name.ts'
import { count, handshakeType, ProtocolError, required, welcomeCoreType } from '../schema/schema.ts'
import type { WireMessage } from '../schema/schema.ts'

/**
 * The versions of the protocol that this code supports. Since version 2, snapshots of the metadata are sent in pieces.
 * Version 3 has the verbs of `IndexReplica` but `find`, and `designChanged`. Version 4 has `find`.
 */
const protocolVersions: VersionRange = Object.freeze({ min: 1, max: 4 })
export const minSecretLength = 32
/** Most bytes of a frame of the handshake, which contains only names, addresses and hashes. */
export const maxHandshakeFrameBytes = 4096
const magic = 'sectional'
export const nonceBytes = 32
export const instanceBytes = 16
const maxNameLength = 512
const maxReasonLength = 200
/** Most ids of starts in an identity. */
const maxStartIds = 32

export interface VersionRange { readonly min: number; readonly max: number }

/** @throws Error when the secret is too short; the text does not contain the secret */
export function checkClusterSecret(secret: string): void {
  if (secret.length < minSecretLength) {
    throw new Error(`the cluster secret has ${secret.length} characters, at least ${minSecretLength} are needed, `
      + 'the same on every node')
  }
}

/** The identity that a node sends in the handshake. */
export interface LinkIdentity extends PeerIdentity {
  /** Random id of this start of the process, 16 bytes in hex. */
  readonly instance: string
}

export interface HandshakeOptions {
  readonly identity: LinkIdentity
  readonly secret: string
  /** 32 random bytes, new for each connection. */
  readonly nonce: Uint8Array
  /** The names in the peer's certificate (`Connection.certifiedNames`); null or absent without TLS. */
  readonly certifiedNames?: readonly string[] | null
  readonly versions?: VersionRange
  /** Dialing side only: the member that this node's metadata has at the dialed address, by its node name, if any. */
  readonly expected?: string | undefined
  /**
   * Decides at the end about a peer that has proven itself. Returns a reason to refuse it, for instance because it is
   * linked already, or null.
   */
  readonly accept?: (peer: LinkIdentity) => HandshakeRefusal | null
}

/** The result of a successful handshake. */
export interface Established {
  readonly peer: LinkIdentity
  readonly version: number
  /** The keys of the frames in each direction. */
  readonly sendKey: FrameKey
  readonly receiveKey: FrameKey
}

export interface HandshakeRefusal {
  /** `rival`: another process, which answers, has a link under the same node name. */
  readonly kind: 'garbage' | 'version' | 'self' | 'cluster' | 'secret' | 'certificate' | 'linked' | 'rival' | 'by-peer'
    | 'busy' | 'timeout'
  /** One sentence, which is logged and sent to the other side. */
  readonly reason: string
  /**
   * For kind `cluster` on the listening side: the dialer's cluster has a member with this node's name and address.
   */
  readonly claimed?: boolean
  /** For kind `by-peer`: the kind that the peer sent; empty when it sent none. */
  readonly peerKind?: string
}

/** The next step of a handshake. `send` must be sent before the rest of the step is handled. */
export type HandshakeStep =
  /** `proven`: the peer, when it has proven itself with the frame that led to this step. */
  | { readonly kind: 'continue'; readonly send: Uint8Array; readonly proven?: LinkIdentity }
  | { readonly kind: 'established'; readonly send?: Uint8Array; readonly result: Established }
  | {
    readonly kind: 'refused'
    readonly send?: Uint8Array
    readonly refusal: HandshakeRefusal
    readonly peer?: LinkIdentity
  }

export interface HandshakeMachine { receive(frame: Uint8Array): HandshakeStep }

class Refusal extends Error {
  readonly refusal: HandshakeRefusal
  readonly peer: LinkIdentity | undefined
  constructor(
    kind: HandshakeRefusal['kind'], reason: string, peer?: LinkIdentity,
    details: Pick<HandshakeRefusal, 'claimed' | 'peerKind'> = {},
  ) {
    super(reason)
    this.refusal = { kind, reason, ...details }
    this.peer = peer
  }
}

/** The side that connected. It sends `hello` as the first frame. */
export class DialingHandshake implements HandshakeMachine {
  readonly hello: Uint8Array
  readonly #options: HandshakeOptions
  #established: Established | undefined
  /** Set when the peer belongs to another cluster. No link opens then, whatever the peer answers to the proof. */
  #foreign: Refusal | undefined

  constructor(options: HandshakeOptions) {
    this.#options = options
    const { min, max } = options.versions ?? protocolVersions
    this.hello = handshakeType.encode({
      hello: {
        magic, minVersion: min, maxVersion: max, nonce: options.nonce, identity: encodeIdentity(options.identity),
        ...(options.expected !== undefined && { expected: options.expected }),
      },
    })
  }

  receive(frame: Uint8Array): HandshakeStep {
    return guarded(() => {
      if (this.#foreign) {
        return {
          kind: 'refused', refusal: this.#foreign.refusal, ...(this.#foreign.peer && { peer: this.#foreign.peer }),
        }
      }
      const message = decodeStep(frame, this.#established?.peer)
      if (this.#established === undefined && message.step === 'welcome') return this.#welcomed(message.welcome)
      if (this.#established !== undefined && message.step === 'accepted') {
        return { kind: 'established', result: this.#established }
      }
      throw new Refusal('garbage', `an unexpected ${message.step ?? 'frame'} in the handshake`)
    })
  }

  #welcomed(welcome: WireMessage): HandshakeStep {
    const { identity, secret, versions = protocolVersions, certifiedNames, accept } = this.#options
    const core = welcomeCoreType.decode(welcome.core)
    const peer = decodeIdentity(core.identity)
    const transcript = transcriptOf(this.hello, welcome.core)
    checkProof(proofOf(secret, 'listener', transcript), welcome.proof, peer)
    checkCertificate(peer, certifiedNames)
    checkNonce(core.nonce, this.#options.nonce)
    if (core.version < versions.min || core.version > versions.max) {
      throw new Refusal('version', `${peer.node} chose protocol version ${core.version}, which was not offered`, peer)
    }
    const proof: HandshakeStep = {
      kind: 'continue', send: handshakeType.encode({ proof: { proof: proofOf(secret, 'dialer', transcript) } }),
    }
    checkName(identity, peer)
    if (isForeign(identity, peer)) {
      // Send the proof nevertheless, because the listener only trusts the Hello of a dialer that has proven itself.
      this.#foreign = foreign(identity, peer)
      return proof
    }
    const refusal = accept?.(peer)
    if (refusal) throw new Refusal(refusal.kind, refusal.reason, peer)
    this.#established = {
      peer,
      version: core.version,
      sendKey: frameKey(secret, 'dialer frames', transcript),
      receiveKey: frameKey(secret, 'listener frames', transcript),
    }
    return { ...proof, proven: peer }
  }
}

/** The side that was connected to. */
export class ListeningHandshake implements HandshakeMachine {
  readonly #options: HandshakeOptions
  #pending: {
    readonly peer: LinkIdentity
    readonly transcript: Uint8Array
    readonly version: number
    readonly expected: string | null
  } | undefined

  constructor(options: HandshakeOptions) { this.#options = options }

  receive(frame: Uint8Array): HandshakeStep {
    return guarded(() => {
      const message = decodeStep(frame)
      if (this.#pending === undefined && message.step === 'hello') return this.#greeted(message.hello, frame)
      if (this.#pending !== undefined && message.step === 'proof') return this.#proven(message.proof.proof)
      throw new Refusal('garbage', `an unexpected ${message.step ?? 'frame'} in the handshake`)
    })
  }

  #greeted(hello: WireMessage, frame: Uint8Array): HandshakeStep {
    const { identity, secret, nonce, versions = protocolVersions } = this.#options
    if (hello.magic !== magic) throw new Refusal('garbage', 'this port speaks the protocol of Sectional nodes')
    const peer = decodeIdentity(hello.identity)
    checkNonce(hello.nonce, nonce)
    const version = Math.min(versions.max, hello.maxVersion)
    if (version < Math.max(versions.min, hello.minVersion)) {
      const reason = `${identity.node} speaks protocol versions ${versions.min} to ${versions.max}, `
        + `${peer.node} ${hello.minVersion} to ${hello.maxVersion}`
      throw new Refusal('version', reason, peer)
    }
    const core = welcomeCoreType.encode({ version, nonce, identity: encodeIdentity(identity) })
    const transcript = transcriptOf(frame, core)
    this.#pending = { peer, transcript, version, expected: hello.expected ?? null }
    return {
      kind: 'continue',
      send: handshakeType.encode({ welcome: { core, proof: proofOf(secret, 'listener', transcript) } }),
    }
  }

  #proven(proof: Uint8Array): HandshakeStep {
    const { identity, secret, certifiedNames, accept } = this.#options
    const { peer, transcript, version, expected } = required(this.#pending, 'hello')
    checkProof(proofOf(secret, 'dialer', transcript), proof, peer)
    checkCertificate(peer, certifiedNames)
    checkName(identity, peer)
    if (isForeign(identity, peer)) throw foreign(identity, peer, { claimed: expected === identity.node })
    const refusal = accept?.(peer)
    if (refusal) throw new Refusal(refusal.kind, refusal.reason, peer)
    const result: Established = {
      peer,
      version,
      sendKey: frameKey(secret, 'listener frames', transcript),
      receiveKey: frameKey(secret, 'dialer frames', transcript),
    }
    return { kind: 'established', send: handshakeType.encode({ accepted: {} }), result }
  }
}

/** Encodes the frame that tells the other side why the connection ends. */
export function encodeRefused({ kind, reason }: HandshakeRefusal): Uint8Array {
  return handshakeType.encode({ refused: { reason: reason.slice(0, maxReasonLength), kind } })
}

function guarded(act: () => HandshakeStep): HandshakeStep {
  try {
    return act()
  } catch (error) {
    if (error instanceof Refusal) {
      const { refusal, peer } = error
      const tell = refusal.kind !== 'by-peer'
      return { kind: 'refused', refusal, ...(tell && { send: encodeRefused(refusal) }), ...(peer && { peer }) }
    }
    if (!(error instanceof ProtocolError)) throw error
    const refusal: HandshakeRefusal = { kind: 'garbage', reason: error.message }
    return { kind: 'refused', refusal, send: encodeRefused(refusal) }
  }
}

/** @param peer the identity of the other side, when it has proven itself */
function decodeStep(frame: Uint8Array, peer?: LinkIdentity): WireMessage {
  if (frame.length > maxHandshakeFrameBytes) throw new ProtocolError('a handshake frame is over the limit')
  const message = handshakeType.decode(frame)
  if (message.step === 'refused') {
    throw new Refusal('by-peer', printable(message.refused.reason, maxReasonLength), peer, {
      peerKind: message.refused.kind,
    })
  }
  return message
}

function encodeIdentity(identity: LinkIdentity): object {
  const { node, address, clusterId, instance, start } = identity
  return {
    node, address, clusterId, instance: Buffer.from(instance, 'hex'),
    ...start && { startIds: start.ids.slice(0, maxStartIds), startConfirmed: start.confirmed },
  }
}

function decodeIdentity(message: WireMessage | null): LinkIdentity {
  const { node, address, clusterId, instance, startIds, startConfirmed } = required(message, 'identity')
  for (const text of [node, address, clusterId ?? 'none']) {
    if (text === '' || text !== printable(text, maxNameLength)) {
      throw new ProtocolError('the identity has text that is empty, too long or not printable ASCII')
    }
  }
  if (instance.length !== instanceBytes) throw new ProtocolError('an instance of a wrong length')
  const start = decodeStart(startIds, startConfirmed)
  return { node, address, clusterId, instance: Buffer.from(instance).toString('hex'), ...start && { start } }
}

function decodeStart(ids: readonly string[], confirmed: number): PeerStart | undefined {
  if (ids.length === 0) return undefined
  if (ids.length > maxStartIds || ids.some(id => !/^[0-9a-f]{1,32}$/.test(id))) {
    throw new ProtocolError('the identity has invalid or too many ids of starts')
  }
  return { ids, confirmed: count(confirmed, 'start_confirmed') }
}

/** Makes text from a peer that may be unknown safe for a log line: ASCII only, and of limited length. */
function printable(text: string, maxLength: number): string {
  return text.slice(0, maxLength).replace(/[^\x20-\x7e]/g, '?')
}

function checkNonce(theirs: Uint8Array, ours: Uint8Array): void {
  if (theirs.length !== nonceBytes) throw new ProtocolError('a nonce of a wrong length')
  if (timingSafeEqual(theirs, ours)) throw new Refusal('garbage', 'the nonce was reflected')
}

function checkProof(expected: Uint8Array, given: Uint8Array, peer: LinkIdentity): void {
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
    throw new Refusal(
      'secret', `the cluster secrets differ: ${peer.node} did not prove that it holds the one used here`, peer,
    )
  }
}

function checkCertificate(peer: LinkIdentity, names: readonly string[] | null | undefined): void {
  const problem = names ? certificateProblem(peer.node, names) : null
  if (problem !== null) throw new Refusal('certificate', printable(problem, maxReasonLength), peer)
}

function checkName(self: PeerIdentity, peer: LinkIdentity): void {
  if (peer.node === self.node) {
    throw new Refusal(
      'self', `both ends are named ${self.node}: this is the node itself, or two nodes have one name`, peer,
    )
  }
}

function isForeign(self: PeerIdentity, peer: LinkIdentity): boolean {
  return peer.clusterId !== null && self.clusterId !== null && peer.clusterId !== self.clusterId
}

function foreign(self: PeerIdentity, peer: LinkIdentity, details: Pick<HandshakeRefusal, 'claimed'> = {}): Refusal {
  return new Refusal(
    'cluster', `${self.node} belongs to cluster ${self.clusterId}, ${peer.node} to cluster ${peer.clusterId}`, peer,
    details,
  )
}

function transcriptOf(hello: Uint8Array, welcomeCore: Uint8Array): Uint8Array {
  const lengths = Buffer.alloc(8)
  lengths.writeUInt32BE(hello.length, 0)
  lengths.writeUInt32BE(welcomeCore.length, 4)
  return createHash('sha256').update(lengths).update(hello).update(welcomeCore).digest()
}

function proofOf(secret: string, role: 'dialer' | 'listener', transcript: Uint8Array): Uint8Array {
  return createHmac('sha256', secret).update(`sectional ${role} proof\0`).update(transcript).digest()
}

function frameKey(secret: string, label: 'dialer frames' | 'listener frames', transcript: Uint8Array): FrameKey {
  return createHmac('sha256', secret).update(`sectional ${label}\0`).update(transcript).digest('hex')
}
