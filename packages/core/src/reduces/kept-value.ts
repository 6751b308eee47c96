/** The limit of the values that a state contains as they were emitted. */
import { quoted, ReduceFailure } from './reduce-failure.ts'

const valueBytesMax = 16 * 1024
const allValuesBytesMax = 256 * 1024

/** Returns the length of the longest value, in bytes of JSON, if a state contains `count` values. */
export function keptValueBytesMax(count: number): number {
  return Math.min(valueBytesMax, Math.floor(allValuesBytesMax / count))
}

/** @param name of the reduce function */
export function keptValueFailure(name: string, count: number, value: Uint8Array): ReduceFailure {
  return new ReduceFailure(
    `The ${name} function accepts values of at most ${keptValueBytesMax(count)} bytes`, quoted(value))
}
