import type { TrailPoint } from '@sectional/core'
import { sealBytes, sealRecord } from '@sectional/runtime'
import { ByteReader } from './byte-reader.ts'
import { ByteWriter } from './byte-writer.ts'
import { checkSeal } from './damaged-record.ts'

/** Encodes each point as its difference to the previous one. Both sequences of a point only increase. */
export function encodeTrail(trail: readonly TrailPoint[]): Uint8Array {
  const writer = new ByteWriter(sealBytes)
  writer.integer(trail.length)
  let before: TrailPoint = { theirs: 0, own: 0 }
  for (const point of trail) {
    writer.integer(point.theirs - before.theirs)
    writer.integer(point.own - before.own)
    before = point
  }
  return sealRecord(writer.finish())
}

export function decodeTrail(bytes: Uint8Array): TrailPoint[] {
  checkSeal(bytes, 'the trail of a replica')
  const reader = new ByteReader(bytes, sealBytes)
  let before: TrailPoint = { theirs: 0, own: 0 }
  return Array.from(
    { length: reader.integer() },
    () => before = { theirs: before.theirs + reader.integer(), own: before.own + reader.integer() },
  )
}
