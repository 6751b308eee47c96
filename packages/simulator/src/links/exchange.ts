import type { ReplicaErrorCode } from '@sectional/core'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { WatchedNetwork } from './watched-network.ts'

/** What both ends of one exchange are to do. Times are milliseconds. */
export interface ExchangePlan {
  /** `call` and `wait` have one answer, a `scan` has pages, and an `upload` has chunks. */
  readonly kind: 'call' | 'wait' | 'scan' | 'upload'
  readonly timeoutMs: number
  /** How long the served end takes before each answer, page or chunk; Infinity: it never answers. */
  readonly servedMs: number
  /** How long the calling end takes between two pages or chunks. */
  readonly ownMs: number
  /** Pages of a scan, chunks of an upload. */
  readonly pieces: number
  /** Bytes of a page or chunk, or of the answer of a call. */
  readonly pieceBytes: number
  /** Bytes of the request of a call; absent: as many as in its answer. */
  readonly requestBytes?: number
  /** After how many pieces the calling end stops early, or its source breaks off; Infinity: it does not. */
  readonly leavesAfter: number
  /** When the calling end aborts the exchange; Infinity: it does not. */
  readonly abortsAfterMs: number
  /** The served end fails at its end with this error; null: it succeeds. */
  readonly fails: ReplicaErrorCode | null
}

/** How an exchange ended at the calling end. */
export type ExchangeOutcome = 'answered' | 'left' | 'broken' | ReplicaErrorCode

/** What is known about one exchange at both ends. */
export class Exchange {
  readonly id: string
  readonly plan: ExchangePlan
  readonly from: SimulatedNode
  readonly to: SimulatedNode
  /** The links of the calling process. */
  readonly caller: WatchedNetwork
  readonly startedMs: number
  /** How often the two processes had been paused at the start. */
  readonly #pauses: number
  /** Pieces that the calling end has taken or given. */
  pieces = 0
  /** Bytes of the pieces that the taking end has taken. */
  takenBytes = 0
  outcome: ExchangeOutcome | undefined
  /** Whether the calling end was told that the served end did nothing. */
  nothingDone = false
  /** When the calling end last waited for nothing. */
  movedMs: number
  /** Whether the source of an upload ended in good order. */
  complete = false
  /** The process that served the exchange. */
  served: WatchedNetwork | undefined
  servedOver = false

  constructor(
    parts: Pick<Exchange, 'id' | 'plan' | 'from' | 'to' | 'caller' | 'startedMs'>,
  ) {
    this.id = parts.id
    this.plan = parts.plan
    this.from = parts.from
    this.to = parts.to
    this.caller = parts.caller
    this.startedMs = this.movedMs = parts.startedMs
    this.#pauses = this.from.pauses + this.to.pauses
  }

  /** Whether one of the processes was paused since the start. */
  get wasPaused(): boolean { return this.from.pauses + this.to.pauses > this.#pauses }

  toString(): string {
    const { kind, pieces, pieceBytes } = this.plan
    return `exchange ${this.id} (${kind}, ${pieces} pieces of ${pieceBytes} bytes) from ${this.from.name} `
      + `to ${this.to.name}`
  }
}

/** Returns the bytes of one piece. They show the exchange and the position. */
export function pieceOf({ id, plan: { pieceBytes } }: Exchange, index: number, bytes = pieceBytes): Uint8Array {
  const mark = `${id}:${index};`
  return Buffer.alloc(Math.max(bytes, mark.length), mark)
}

/** Returns the body of the request of a call. */
export function requestOf(exchange: Exchange): Uint8Array { return pieceOf(exchange, 0, exchange.plan.requestBytes) }

/** Returns the id of the exchange to which a piece belongs. */
export function idOfPiece(piece: Uint8Array): string {
  return Buffer.from(piece.subarray(0, 64)).toString().split(':')[0]!
}

/** How the exchange ends when nothing disturbs it and nobody aborts it. */
export function plannedOutcome({ kind, leavesAfter, pieces, servedMs, fails }: ExchangePlan): ExchangeOutcome {
  if (leavesAfter <= pieces) return kind === 'scan' ? 'left' : 'broken'
  if (servedMs === Infinity) return 'timeout'
  return fails ?? 'answered'
}
