import { ByteWriter } from '../encoding/byte-writer.ts'
import { ByteReader } from '../encoding/varint.ts'
import { ApiError } from '../errors.ts'
import { isJsonObject, type JsonObject } from '../json/json-text.ts'
import type { BuiltInReduce, ReducedRow, Reduction } from './built-in-reduce.ts'
import { ExactSum } from './exact-sum.ts'
import { failureOf, quotedText, ReduceFailure } from './reduce-failure.ts'
import { parseValue } from './reduced-value.ts'

/** Most elements of the arrays of which statistics are computed. */
const statsElementsMax = 1024

const oneTag = 0
const arrayTag = 1
const failureTag = 2

/**
 * `_stats` computes sum, count, minimum, maximum and sum of squares of numbers; or of each element of arrays, which
 * must all have the same length. In place of a number, a row may have an object with these five numbers, which are
 * combined with the others. Sums are exact like those of `_sum`. The square of a number that is not an integer is
 * rounded to a double before it is added.
 */
export const statsReduce: BuiltInReduce = { name: '_stats', start: () => new Stats() }

class Stats implements Reduction {
  #stats: NumberStats | NumberStats[] | undefined
  #failure: ReduceFailure | undefined

  addRow({ value }: ReducedRow): void {
    this.#failure ??= failureOf(() => this.#addValue(parseValue(value, '_stats')))
  }

  addState(state: Uint8Array): void {
    const reader = new ByteReader(state)
    const tag = reader.byte()
    if (tag === failureTag) {
      this.#failure ??= ReduceFailure.decode(reader)
      return
    }
    if (tag !== oneTag && tag !== arrayTag) throw new RangeError(`${tag} is not the tag of a state of _stats`)
    const length = tag === arrayTag ? reader.varint() : undefined
    if (length !== undefined && length > statsElementsMax) throw new RangeError('a state of _stats is too long')
    this.#failure ??= failureOf(() => {
      const added = (): string => `statistics of ${length === undefined ? 'numbers' : `arrays of ${length} elements`}`
      for (const stats of this.#targets(length, added)) stats.addEncoded(reader)
    })
  }

  encode(): Uint8Array {
    const writer = new ByteWriter()
    const stats = this.#stats
    if (this.#failure !== undefined) {
      writer.byte(failureTag)
      this.#failure.encode(writer)
    } else if (Array.isArray(stats)) {
      writer.byte(arrayTag)
      writer.varint(stats.length)
      for (const element of stats) element.encode(writer)
    } else {
      writer.byte(oneTag)
      stats!.encode(writer)
    }
    return writer.result()
  }

  result(): string {
    const stats = this.#stats
    let json = ''
    const failure = this.#failure ?? failureOf(() => {
      json = Array.isArray(stats) ? `[${stats.map(element => element.toJson()).join(',')}]` : stats!.toJson()
    })
    if (failure !== undefined) throw new ApiError('invalid_value', failure.reason)
    return json
  }

  #addValue(value: unknown): void {
    if (typeof value === 'number' && this.#stats instanceof NumberStats) return this.#stats.add(value)
    const values = Array.isArray(value) ? value as unknown[] : [value]
    const added = (): string => quotedText(JSON.stringify(value))
    for (const [index, target] of this.#targets(Array.isArray(value) ? value.length : undefined, added).entries()) {
      addTo(target, values[index])
    }
  }

  /**
   * Returns the statistics to which a row is added.
   *
   * @param length of the row's array; undefined for a number
   */
  #targets(length: number | undefined, added: () => string): readonly NumberStats[] {
    if (length !== undefined && length > statsElementsMax) {
      throw new ReduceFailure(`The _stats function accepts arrays of at most ${statsElementsMax} elements`, 'null')
    }
    this.#stats ??= length === undefined ? new NumberStats() : Array.from({ length }, () => new NumberStats())
    const stats = this.#stats
    if ((Array.isArray(stats) ? stats.length : undefined) !== length) throw mixed(added())
    return Array.isArray(stats) ? stats : [stats]
  }
}

/** The statistics of at least one number. */
class NumberStats {
  readonly #sum = new ExactSum()
  readonly #count = new ExactSum()
  readonly #squares = new ExactSum()
  #minimum = Infinity
  #maximum = -Infinity

  add(value: number): void {
    this.#sum.add(value)
    this.#count.add(1)
    this.#squares.addSquare(value)
    this.#widen(value, value)
  }

  addStats({ sum, count, min, max, sumsqr }: Readonly<Record<StatsField, number>>): void {
    this.#sum.add(sum)
    this.#count.add(count)
    this.#squares.add(sumsqr)
    this.#widen(min, max)
  }

  addEncoded(reader: ByteReader): void {
    for (const sum of [this.#sum, this.#count, this.#squares]) sum.addEncoded(reader)
    this.#widen(reader.double(), reader.double())
  }

  encode(writer: ByteWriter): void {
    for (const sum of [this.#sum, this.#count, this.#squares]) sum.encode(writer)
    writer.double(this.#minimum)
    writer.double(this.#maximum)
  }

  toJson(): string {
    const numbers = [this.#sum, this.#count, this.#squares].map(sum => sum.toJson())
    if (numbers.includes(undefined)) throw new ReduceFailure('A sum of _stats is beyond the range of doubles', 'null')
    const [sum, count, squares] = numbers
    return `{"sum":${sum},"count":${count},"min":${this.#minimum},"max":${this.#maximum},"sumsqr":${squares}}`
  }

  #widen(minimum: number, maximum: number): void {
    if (minimum < this.#minimum) this.#minimum = minimum
    if (maximum > this.#maximum) this.#maximum = maximum
  }
}

const statsFields = ['sum', 'count', 'min', 'max', 'sumsqr'] as const
type StatsField = typeof statsFields[number]

/** @throws ReduceFailure for a value that is neither a number nor an object of statistics */
function addTo(stats: NumberStats, value: unknown): void {
  if (typeof value === 'number') stats.add(value)
  else if (isJsonObject(value)) stats.addStats(checkedStats(value))
  else {
    const json = quotedText(JSON.stringify(value))
    throw new ReduceFailure(
      `The _stats function requires that map values be numbers or arrays of numbers, not '${json}'`, json)
  }
}

function checkedStats(value: JsonObject): Readonly<Record<StatsField, number>> {
  for (const field of statsFields) {
    const number = Object.hasOwn(value, field) ? value[field] : undefined
    if (Number.isFinite(number)) continue
    const json = quotedText(JSON.stringify(number === undefined ? value : number))
    throw new ReduceFailure(number === undefined
      ? `user _stats input missing required field ${field} (${json})`
      : `non-numeric _stats input received for ${field}: ${json}`, json)
  }
  return value as Readonly<Record<StatsField, number>>
}

function mixed(added: string): ReduceFailure {
  const rule = 'either all map values be numbers, or all be arrays of the same length'
  return new ReduceFailure(`The _stats function requires that ${rule}, not '${added}'`, 'null')
}
