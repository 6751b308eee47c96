/** What a client hears. */
export type Answer =
  | {
      readonly kind: 'answered'
      readonly status: number
      // eslint-disable-next-line @typescript-eslint/no-explicit-any
      readonly body: any
    }
  /** Nobody listened: nothing was done. */
  | { readonly kind: 'refused'; readonly status: 0; readonly body: undefined }
  /** The connection broke, or the client gave up waiting: anything may have been done, or may yet be. */
  | {
    readonly kind: 'unknown'
    readonly status: 0
    readonly body: undefined
    /** The part of an answer that arrived before the connection broke. */
    readonly partial?: string
  }

export const refused: Answer = { kind: 'refused', status: 0, body: undefined }
export const unknown: Answer = { kind: 'unknown', status: 0, body: undefined }

/** A body that is no JSON. */
export interface Content { readonly type: string; readonly text: string }

export interface Request {
  readonly method: string
  readonly target: string
  readonly json?: unknown
  /** In place of `json`. */
  readonly content?: Content
  /** Milliseconds until the client gives up. */
  readonly timeoutMs?: number
  /** Called as the node takes the request in, and in the very turn in which it answers, before the client hears it. */
  readonly onDelivered?: () => void
  readonly onAnswered?: (answer: Answer) => void
}
