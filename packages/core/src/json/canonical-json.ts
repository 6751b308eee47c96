/**
 * Canonical JSON is what bodies are stored as: compact, strings as JSON.stringify writes them, numbers digit by
 * digit as the client wrote them (`-0` as `0`), each member once. It never goes through JavaScript values, which
 * lose digits beyond 2^53, take `1.0` for `1`, and move members named like integers to the front.
 *
 * Most clients send canonical JSON, so the first look only makes sure of that, and finds the members that start
 * with an underscore on the way (`ObjectScan`, about 1 us a kilobyte). The rest is rewritten (`compactJson`).
 */
import { ApiError } from '../errors.ts'
import {
  backslashByte, closeBraceByte, closeBracketByte, colonByte, commaByte, isSpace, minusByte, nineByte, openBraceByte,
  openBracketByte, plainTextEnd, pointByte, quoteByte,
  skipString, skipToken, textOf, underscoreByte, zeroByte,
} from './json-bytes.ts'
import { jsonDepthMax, tooDeep } from './json-limits.ts'
import { blankRepeatedMembers } from './repeated-members.ts'

/** An object's place in its bytes. */
export interface ScannedObject {
  readonly bytes: Uint8Array
  readonly start: number
  readonly end: number
  /** Top-level members whose name starts with an underscore, in their order. */
  readonly special: readonly ScannedMember[]
  /** Members at all depths, repeated ones counted. */
  readonly memberCount: number
}

/** From the name's quote to behind the value. */
export interface ScannedMember { readonly name: string; readonly start: number; readonly end: number }

/** From here on a string without escapes is copied natively. */
const longStringLength = 256
/** Longest number that is taken for finite without asking. */
const plainNumberLengthMax = 300

/**
 * The object that starts at `start` if it is canonical, repeated members aside; null: it is not, or too odd to tell
 * quickly. Of bytes that are no JSON it says anything.
 *
 * @throws ApiError `bad_request` when nested deeper than `jsonDepthMax`; SyntaxError for a broken name
 */
export function scanCanonical(bytes: Uint8Array, start: number): ScannedObject | null {
  return new ObjectScan(bytes, start, false).run(Number.POSITIVE_INFINITY) ?? null
}

/** The same for an object that ends before byte `until`; undefined: it is longer. */
export function scanShortCanonical(bytes: Uint8Array, start: number, until: number): ScannedObject | null | undefined {
  return new ObjectScan(bytes, start, false).run(until)
}

/** Bytes between two yields of the generators below. */
const sliceBytes = 64 * 1024

/** What `scanCanonical` does, in slices. */
export function* scanCanonicalInSlices(
  bytes: Uint8Array, start: number, sure = false,
): Generator<void, ScannedObject | null> {
  const scan = new ObjectScan(bytes, start, sure)
  for (let until = start + sliceBytes; ; until += sliceBytes) {
    const found = scan.run(until)
    if (found !== undefined) return found
    yield
  }
}

/** The valid JSON object from `start` to before `end`, which has no repeated members, in canonical form, in slices. */
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
 * The object that starts at `start`, in canonical form and without repeated members.
 *
 * @param end behind it
 * @param value parsed from it
 * @param found what `scanCanonical` said of it
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
   * Goes on to about byte `until`. undefined: the object is longer; null: it is not canonical (or too odd to tell
   * quickly).
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
      } else if (!sure && (isSpace(code) || (code === minusByte && bytes[at + 1] === zeroByte && bytes[at + 2] !== pointByte))) {
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
 * Behind the string at this place; -1 when it has escapes that JSON.stringify might write in another way, or no end.
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

/** Behind the digits at this place; -1 for an exponent or so many digits that no double might hold it. */
function plainNumberEnd(bytes: Uint8Array, start: number): number {
  let at = start + 1
  let code = bytes[at]!
  while ((code <= nineByte && code >= zeroByte) || code === pointByte) code = bytes[++at]!
  return code === 0x65 || code === 0x45 || at - start > plainNumberLengthMax ? -1 : at
}

/**
 * Valid JSON without white space, strings and numbers in canonical form, repeated members as they are.
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
    // Canonical forms are never longer.
    this.#out = Buffer.allocUnsafe(end - start)
  }

  /** What has been written; all of it once `run` has answered true. */
  result(): Buffer {
    return this.#out.subarray(0, this.#to)
  }

  /** Goes on for about so many bytes; true at the end. */
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

/** Returns the bytes written. */
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

/** Members of a parsed value at all depths. */
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

/** Canonical text in which each repeated member stands once, with its last value at its last place. */
function withoutRepeats({ bytes, start, end }: ScannedObject): Buffer {
  const blanking = blankRepeatedMembers(bytes, start, end)
  for (let step = blanking.next(); ; step = blanking.next()) {
    if (step.done === true) return compactJson(step.value.bytes, 0, step.value.bytes.length)
  }
}

/** The object's text without some of its special members (given in their order). */
export function cutMembers({ bytes, start, end }: ScannedObject, members: readonly ScannedMember[]): Buffer {
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
