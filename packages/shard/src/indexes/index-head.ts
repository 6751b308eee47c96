import type { IndexHead, IndexState } from '@sectional/core'

/** Returns the head of an answer. Its members are listed, since to spread them takes longer than a search in a run. */
export function indexHead({ position, readSequence, version, rowCount }: IndexState, rowsBefore: number): IndexHead {
  return { kind: 'head', position, readSequence, version, rowCount, rowsBefore }
}
