/** The result of a request as a client sees it. */
export type Answer =
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly body: any
    }
  /** No process was listening, so nothing was done. */
  | { readonly kind: 'refused'; readonly status: 0; readonly body: undefined }
  /** The connection broke, or the client stopped waiting: the request may have been carried out, or may still be. */
  | {
    readonly kind: 'unknown'
    readonly status: 0
    readonly body: undefined
    /** The part of an answer that arrived before the connection broke. */
    readonly partial?: string
  }

export const refused: Answer = { kind: 'refused', status: 0, body: undefined }
export const unknown: Answer = { kind: 'unknown', status: 0, body: undefined }

/** A request body that is not JSON. */
export interface Content { readonly type: string; readonly text: string }

export interface Request {
  readonly method: string
  readonly target: string
  readonly json?: unknown
  /** A body that is sent instead of `json`. */
  readonly content?: Content
  readonly headers?: Readonly<Record<string, string>>
  /** Milliseconds after which the client stops waiting. */
  readonly timeoutMs?: number
  /**
   * Called when the node receives the request, and in the turn in which it answers, before the client receives the
   * answer.
   */
  readonly onDelivered?: () => void
  readonly onAnswered?: (answer: Answer) => void
}
