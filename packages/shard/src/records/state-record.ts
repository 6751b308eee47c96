import { sealBytes, sealRecord } from '@sectional/runtime'
import { ByteWriter } from './byte-writer.ts'
import { ByteReader } from './byte-reader.ts'
import { checkSeal, DamagedRecordError } from './damaged-record.ts'

/** The counters of a replica. They are written with each batch. */
export interface ReplicaState {
  /** Sequence of the last change. */
  readonly sequence: number
  readonly documentCount: number
  readonly deletedCount: number
  readonly purgeSequence: number
  /** Bytes of document records, their leaves' bodies, and local documents. */
  readonly activeBytes: number
  /** Bytes of the leaves' JSON. */
  readonly externalBytes: number
  /** Estimated bytes of the bodies whose revisions were replaced since the last compaction. */
  readonly replacedBytes: number
  /** Sequence of the newest row of a purged document that was removed when its purge was trimmed; 0: none was. */
  readonly purgesForgotten: number
}

export const emptyState: ReplicaState = {
  sequence: 0, documentCount: 0, deletedCount: 0, purgeSequence: 0, activeBytes: 0, externalBytes: 0, replacedBytes: 0,
  purgesForgotten: 0,
}

const format = 3
/** The second format has no `purgesForgotten`. */
const secondFormat = 2
/** The first format also has no `replacedBytes`. */
const firstFormat = 1

export function encodeState(state: ReplicaState): Uint8Array {
  const writer = new ByteWriter(sealBytes)
  writer.byte(format)
  writer.integer(state.sequence)
  writer.integer(state.documentCount)
  writer.integer(state.deletedCount)
  writer.integer(state.purgeSequence)
  writer.integer(state.activeBytes)
  writer.integer(state.externalBytes)
  writer.integer(state.replacedBytes)
  writer.integer(state.purgesForgotten)
  return sealRecord(writer.finish())
}

export function decodeState(bytes: Uint8Array): ReplicaState {
  checkSeal(bytes, 'the state of a replica')
  const reader = new ByteReader(bytes, sealBytes)
  const found = reader.byte()
  if (found < firstFormat || found > format) {
    throw new DamagedRecordError(`the state of a replica has format ${found}; this version reads ${format}`)
  }
  return {
    sequence: reader.integer(),
    documentCount: reader.integer(),
    deletedCount: reader.integer(),
    purgeSequence: reader.integer(),
    activeBytes: reader.integer(),
    externalBytes: reader.integer(),
    replacedBytes: found < secondFormat ? 0 : reader.integer(),
    purgesForgotten: found < format ? 0 : reader.integer(),
  }
}
