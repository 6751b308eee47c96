/** Failures of built-in reduce functions, which are a part of their states. */
import { textOf } from '../json/json-bytes.ts'
import type { ByteReader } from '../encoding/varint.ts'
import type { ByteWriter } from '../encoding/byte-writer.ts'

/** Longest JSON text of a value that a failure contains as it is, in UTF-16 units. */
const quotedLengthMax = 1024
/** Bytes of a value that are read in order to quote it. A character of UTF-8 has up to four bytes. */
const quotedBytesMax = 4 * quotedLengthMax

/** The reason why rows cannot be reduced. Is thrown within a reduction and becomes its state. */
export class ReduceFailure extends Error {
  readonly reason: string
  /** JSON text of the value that cannot be reduced. */
  readonly causedBy: string

  constructor(reason: string, causedBy: string) {
    super(reason)
    this.reason = reason
    this.causedBy = causedBy
  }

  static decode(reader: ByteReader): ReduceFailure {
    const reason = reader.text(reader.varint(), 'utf8')
    return new ReduceFailure(reason, reader.text(reader.varint(), 'utf8'))
  }

  encode(writer: ByteWriter): void {
    writer.text(this.reason)
    writer.text(this.causedBy)
  }

  /** Returns the JSON text that a client receives in place of the reduced value. */
  toJson(): string {
    return `{"error":"builtin_reduce_error","reason":${JSON.stringify(this.reason)},"caused_by":${this.causedBy}}`
  }
}

/** Returns the JSON text of a value, or for a long one its beginning as a JSON string. */
export function quoted(value: Uint8Array): string {
  return quotedText(textOf(value, 0, Math.min(value.length, quotedBytesMax)))
}

/** Returns JSON text, or for a long one its beginning as a JSON string. */
export function quotedText(json: string): string {
  return json.length <= quotedLengthMax ? json : JSON.stringify(`${json.slice(0, quotedLengthMax).toWellFormed()}...`)
}

/**
 * Runs a step of a reduction.
 *
 * @returns the failure of the step, if it has one
 */
export function failureOf(step: () => void): ReduceFailure | undefined {
  try {
    step()
    return undefined
  } catch (error) {
    if (error instanceof ReduceFailure) return error
    throw error
  }
}
