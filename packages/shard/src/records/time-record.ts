import type { TimeSpan } from '@sectional/core'
import { sealBytes, sealRecord } from '@sectional/runtime'
import { ByteReader } from './byte-reader.ts'
import { ByteWriter } from './byte-writer.ts'
import { checkSeal } from './damaged-record.ts'

export function encodeTimeSpans(spans: readonly TimeSpan[]): Uint8Array {
  const writer = new ByteWriter(sealBytes)
  writer.integer(spans.length)
  for (const { begin, sequence } of spans) {
    writer.integer(begin)
    writer.integer(sequence)
  }
  return sealRecord(writer.finish())
}

export function decodeTimeSpans(bytes: Uint8Array): TimeSpan[] {
  checkSeal(bytes, 'the record of times')
  const reader = new ByteReader(bytes, sealBytes)
  return Array.from({ length: reader.integer() }, () => ({ begin: reader.integer(), sequence: reader.integer() }))
}
