/**
 * Canonical JSON is the form in which bodies are stored: without white space, strings as JSON.stringify writes them,
 * numbers digit by digit as the client wrote them (`-0` as `0`), each member once. It is never made from JavaScript
 * values, because these lose digits beyond 2^53, take `1.0` for `1`, and move members named like integers to the front.
 *
 * Most clients send canonical JSON. A first pass (`ObjectScan`, about 1 us per kilobyte) therefore only checks that
 * the text is canonical, and also finds the members whose names start with an underscore. Other text is rewritten
 * (`compactJson`).
 */
import { ApiError } from '../errors.ts'
import {
  backslashByte, closeBraceByte, closeBracketByte, colonByte, commaByte, isSpace, minusByte, nineByte, openBraceByte,
  openBracketByte, plainTextEnd, pointByte, quoteByte,
  skipString, skipToken, textOf, underscoreByte, zeroByte,
} from './json-bytes.ts'
import { jsonDepthMax, tooDeep } from './json-limits.ts'
import { blankRepeatedMembers } from './repeated-members.ts'

/** The position of an object in its bytes, from `start` to before `end`. */
export interface ScannedObject {
  readonly bytes: Uint8Array
  readonly start: number
  readonly end: number
  /** Top-level members whose names start with an underscore, in their order. */
  readonly special: readonly ScannedMember[]
  /** Number of members at all depths; a repeated member is counted each time. */
  readonly memberCount: number
}

/** The position of a member: `start` is the opening quote of its name, `end` is after its value. */
export interface ScannedMember { readonly name: string; readonly start: number; readonly end: number }

/** A string without escapes that is longer than this is copied by a native call. */
const longStringLength = 256
/** A number without an exponent and with at most this many digits is finite as a double. */
const plainNumberLengthMax = 300

/**
 * Scans the object that starts at `start`. Returns null when it is not canonical, or when this cannot be decided
 * quickly. Repeated members are not detected. The result is meaningless when the bytes are not valid JSON.
 *
 * @throws ApiError `bad_request` when nested deeper than `jsonDepthMax`; SyntaxError for a broken name
 */
export function scanCanonical(bytes: Uint8Array, start: number): ScannedObject | null {
  return new ObjectScan(bytes, start, false).run(Number.POSITIVE_INFINITY) ?? null
}

/** Like `scanCanonical`, but returns undefined when the object does not end before byte `until`. */
export function scanShortCanonical(bytes: Uint8Array, start: number, until: number): ScannedObject | null | undefined {
  return new ObjectScan(bytes, start, false).run(until)
}

/** Bytes between two yields of the generators below. */
const sliceBytes = 64 * 1024

/** Like `scanCanonical`, in slices. @param sure the bytes are known to be canonical */
function* scanCanonicalInSlices(
  bytes: Uint8Array, start: number, sure = false,
): Generator<void, ScannedObject | null> {
  const scan = new ObjectScan(bytes, start, sure)
  for (let until = start + sliceBytes; ; until += sliceBytes) {
    const found = scan.run(until)
    if (found !== undefined) return found
    yield
  }
}

/** Rewrites the valid JSON object from `start` to before `end`, which has no repeated members, in slices. */
export function* canonicalObjectInSlices(
  bytes: Uint8Array, start: number, end: number,
): Generator<void, ScannedObject> {
  const found = yield* scanCanonicalInSlices(bytes, start)
  if (found !== null) return found
  const compaction = new Compaction(bytes, start, end)
  while (!compaction.run(sliceBytes)) yield
  const scanned = yield* scanCanonicalInSlices(compaction.result(), 0, true)
  if (scanned === null) throw new RangeError('not canonical after compaction')
  return scanned
}

/**
 * Returns the object that starts at `start`, in canonical form and without repeated members.
 *
 * @param end the byte after the object
 * @param value the parsed object
 * @param found the result of `scanCanonical` for the object
 * @throws ApiError `bad_request` when nested deeper than `jsonDepthMax`
 */
export function canonicalObject(
  bytes: Uint8Array, start: number, end: number, value: object, found: ScannedObject | null,
): ScannedObject {
  const scanned = found ?? rescan(compactJson(bytes, start, end))
  if (scanned.memberCount === countMembers(value)) return scanned
  return rescan(withoutRepeats(scanned))
}

function rescan(canonical: Buffer): ScannedObject {
  const scanned = new ObjectScan(canonical, 0, true).run(Number.POSITIVE_INFINITY) ?? null
  if (scanned === null) throw new RangeError('not canonical after compaction')
  return scanned
}

class ObjectScan {
  readonly #bytes: Uint8Array
  readonly #start: number
  readonly #sure: boolean
  readonly #special: ScannedMember[] = []
  #memberCount = 0
  #depth = 0
  #memberStart: number
  #at: number

  /** @param sure the bytes are known to be canonical */
  constructor(bytes: Uint8Array, start: number, sure: boolean) {
    this.#bytes = bytes
    this.#start = start
    this.#sure = sure
    this.#memberStart = start + 1
    this.#at = start
  }

  /**
   * Continues the scan to about byte `until`. Returns undefined when the object is longer, and null when it is not
   * canonical or this cannot be decided quickly.
   */
  run(until: number): ScannedObject | null | undefined {
    const bytes = this.#bytes
    const start = this.#start
    const sure = this.#sure
    const special = this.#special
    let memberCount = this.#memberCount
    let depth = this.#depth
    let memberStart = this.#memberStart
    let at = this.#at
    while (at < until) {
      const code = bytes[at]
      if (code === undefined) return null
      if (code === quoteByte) {
        at = sure ? skipString(bytes, at) : plainStringEnd(bytes, at)
        if (at !== -1) continue
        return null
      }
      if (code <= nineByte && code >= zeroByte) {
        at = sure ? skipToken(bytes, at) : plainNumberEnd(bytes, at)
        if (at !== -1) continue
        return null
      }
      if (code === colonByte) memberCount++
      else if (code === openBraceByte || code === openBracketByte) {
        if (++depth > jsonDepthMax) throw tooDeep()
      } else if (code === commaByte || code === closeBraceByte || code === closeBracketByte) {
        if (depth === 1) {
          if (bytes[memberStart + 1] === underscoreByte && memberStart < at) {
            special.push(member(bytes, memberStart, at))
          }
          memberStart = at + 1
        }
        if (code !== commaByte && --depth === 0) return { bytes, start, end: at + 1, special, memberCount }
      } else if (!sure && (
        isSpace(code) || (code === minusByte && bytes[at + 1] === zeroByte && bytes[at + 2] !== pointByte)
      )) {
        return null
      }
      at++
    }
    this.#memberCount = memberCount
    this.#depth = depth
    this.#memberStart = memberStart
    this.#at = at
    return undefined
  }
}

function member(bytes: Uint8Array, start: number, end: number): ScannedMember {
  const nameEnd = skipString(bytes, start)
  const text = textOf(bytes, start + 1, nameEnd - 1)
  return { name: text.includes('\\') ? JSON.parse(`"${text}"`) as string : text, start, end }
}

/**
 * Returns the byte after the string that starts at `start`; -1 when it has escapes that JSON.stringify might write
 * differently, or when it does not end.
 */
function plainStringEnd(bytes: Uint8Array, start: number): number {
  for (let at = plainTextEnd(bytes, start + 1); ; at++) {
    const code = bytes[at]
    if (code === quoteByte) return at + 1
    if (code === undefined) return -1
    if (code === backslashByte) {
      const escaped = bytes[++at]
      if (escaped === 0x2f || escaped === 0x75) return -1 // slash, u
    }
  }
}

/** Returns the byte after the number; -1 when it has an exponent or so many digits that a double might overflow. */
function plainNumberEnd(bytes: Uint8Array, start: number): number {
  let at = start + 1
  let code = bytes[at]!
  while ((code <= nineByte && code >= zeroByte) || code === pointByte) code = bytes[++at]!
  return code === 0x65 || code === 0x45 || at - start > plainNumberLengthMax ? -1 : at
}

/**
 * Rewrites valid JSON without white space, with strings and numbers in canonical form. Repeated members are kept.
 *
 * @throws ApiError `invalid_json` for a number that no double can hold, as in CouchDB
 */
function compactJson(bytes: Uint8Array, start: number, end: number): Buffer {
  const compaction = new Compaction(bytes, start, end)
  compaction.run(end - start)
  return compaction.result()
}

class Compaction {
  readonly #bytes: Uint8Array
  readonly #end: number
  readonly #out: Buffer
  #at: number
  #to = 0

  constructor(bytes: Uint8Array, start: number, end: number) {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
    // The canonical form is never longer than the input.
    this.#out = Buffer.allocUnsafe(end - start)
  }

  /** Returns the bytes written so far. They are complete once `run` has returned true. */
  result(): Buffer {
    return this.#out.subarray(0, this.#to)
  }

  /** Rewrites about `length` further bytes of the input; returns true at the end. */
  run(length: number): boolean {
    const bytes = this.#bytes
    const out = this.#out
    const until = Math.min(this.#end, this.#at + length)
    let to = this.#to
    let at = this.#at
    while (at < until) {
      const code = bytes[at]!
      if (code === quoteByte) {
        const next = skipString(bytes, at)
        to += writeString(out, to, bytes, at, next)
        at = next
      } else if (code === minusByte || (code >= zeroByte && code <= nineByte)) {
        const next = skipToken(bytes, at)
        to += out.write(exactNumber(textOf(bytes, at, next)), to, 'latin1')
        at = next
      } else {
        if (!isSpace(code)) out[to++] = code
        at++
      }
    }
    this.#to = to
    this.#at = at
    return at >= this.#end
  }
}

/** Returns the number of bytes written. */
function writeString(out: Buffer, to: number, bytes: Uint8Array, start: number, end: number): number {
  if (end - start > longStringLength && plainTextEnd(bytes, start + 1) === end - 1) {
    out.set(bytes.subarray(start, end), to)
    return end - start
  }
  for (let i = 0; i < end - start; i++) {
    const code = bytes[start + i]!
    if (code === backslashByte) return out.write(JSON.stringify(JSON.parse(textOf(bytes, start, end))), to, 'utf8')
    out[to + i] = code
  }
  return end - start
}

function exactNumber(token: string): string {
  if (token === '-0') return '0'
  if (/[.eE]/.test(token) && !Number.isFinite(Number(token))) throw new ApiError('invalid_json')
  return token
}

/** Counts the members of a parsed value at all depths. */
function countMembers(value: object): number {
  let count = 0
  if (Array.isArray(value)) {
    for (const item of value as unknown[]) if (typeof item === 'object' && item !== null) count += countMembers(item)
    return count
  }
  for (const name in value) {
    count++
    const item = (value as Record<string, unknown>)[name]
    if (typeof item === 'object' && item !== null) count += countMembers(item)
  }
  return count
}

/** Returns canonical text that keeps only the last occurrence of each repeated member, at its position. */
function withoutRepeats({ bytes, start, end }: ScannedObject): Buffer {
  const blanking = blankRepeatedMembers(bytes, start, end)
  for (let step = blanking.next(); ; step = blanking.next()) {
    if (step.done === true) return compactJson(step.value.bytes, 0, step.value.bytes.length)
  }
}

/** Returns the object's text without the given special members, which must be in the order of the text. */
export function cutMembers(
  { bytes, start, end }: Pick<ScannedObject, 'bytes' | 'start' | 'end'>,
  members: readonly Pick<ScannedMember, 'start' | 'end'>[],
): Buffer {
  const out = Buffer.allocUnsafe(end - start)
  out[0] = openBraceByte
  let to = 1
  let from = start + 1
  for (const member of members) {
    to = copy(out, to, bytes, from, member.start)
    from = Math.min(member.end + 1, end - 1)
  }
  to = copy(out, to, bytes, from, end - 1)
  if (out[to - 1] === commaByte) to-- // the last member was cut
  out[to++] = closeBraceByte
  return out.subarray(0, to)
}

function copy(out: Buffer, to: number, bytes: Uint8Array, start: number, end: number): number {
  if (end > start) out.set(bytes.subarray(start, end), to)
  return to + end - start
}
