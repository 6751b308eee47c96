/**
 * Reads some members of canonical JSON objects without parsing the others. To skip a value costs a fifth of parsing it,
 * and the search ends with the last member that is needed.
 */
import { asBuffer } from '../encoding/as-buffer.ts'
import {
  backslashByte, closeBraceByte, closeBracketByte, commaByte, minusByte, nineByte, openBraceByte, plainTextEnd,
  quoteByte, skipString, skipToken, skipValue, zeroByte,
} from './json-bytes.ts'
import { parseText } from './json-text.ts'

/** A member that is read, or the members of its value that are read when this is an object. */
interface ReadMember {
  readonly name: string
  /** The name as canonical JSON has it, with the colon. */
  readonly token: Uint8Array
  /** Empty: the whole value is read. */
  inner: ReadMember[]
}

const lowerTByte = 0x74
const lowerFByte = 0x66
const lowerNByte = 0x6e
/** The most digits of an integer that is exact in each step of its computation. */
const exactDigitsMax = 15

const acceptAll = (): boolean => true

export class MemberReader {
  readonly #members: ReadMember[] = []
  #bytes: Buffer = Buffer.alloc(0)
  /** The position in `#bytes`. */
  #at = 0

  /**
   * @param paths to what is read: the names of a member, of a member of its value, and so on. Each has a name. Where a
   * path meets a value that is not an object, this value is read.
   */
  constructor(paths: readonly (readonly string[])[]) {
    // The first paths are the shortest, so that a whole value is known before paths into it.
    for (const path of paths.toSorted((a, b) => a.length - b.length)) addPath(this.#members, path)
  }

  /**
   * Sets those of an object's members to which the paths lead. The other members are missing.
   *
   * @param json the object in canonical JSON, as bodies are stored. The result is undefined for other JSON.
   * @param into receives the members
   * @param accepts is called with the name of each member after it was set. When it returns false, reading ends.
   * @returns false when reading ended by `accepts`
   */
  read(json: Uint8Array, into: Record<string, unknown>, accepts: (name: string) => boolean = acceptAll): boolean {
    this.#bytes = asBuffer(json)
    this.#at = 0
    return this.#object(this.#members, into, accepts)
  }

  /** Reads the object at the position. Afterwards the position is anywhere within it. */
  #object(
    members: readonly ReadMember[], object: Record<string, unknown>, accepts: (name: string) => boolean,
  ): boolean {
    const bytes = this.#bytes
    let left = members.length
    this.#at++
    while (left > 0 && bytes[this.#at] === quoteByte) {
      const member = memberAt(bytes, this.#at, members)
      if (member === undefined) {
        this.#at = skipValue(bytes, skipString(bytes, this.#at) + 1)
      } else {
        this.#at += member.token.length
        const value = this.#value(member, --left === 0)
        // An assignment would not make a member of this name.
        if (member.name === '__proto__') Object.defineProperty(object, member.name, { value, enumerable: true })
        else object[member.name] = value
        if (!accepts(member.name)) return false
      }
      if (bytes[this.#at] !== commaByte) break
      this.#at++
    }
    return true
  }

  /** Reads the value at the position, and moves behind it unless it is the last one that is needed. */
  #value({ inner }: ReadMember, isLast: boolean): unknown {
    const bytes = this.#bytes
    const start = this.#at
    const first = bytes[start]!
    if (first === openBraceByte && inner.length > 0) {
      const object: Record<string, unknown> = {}
      this.#object(inner, object, acceptAll)
      if (!isLast) this.#at = skipValue(bytes, start)
      return object
    }
    if (first === quoteByte) return this.#text()
    switch (first) {
      case lowerTByte:
        this.#at += 4
        return true
      case lowerFByte:
        this.#at += 5
        return false
      case lowerNByte:
        this.#at += 4
        return null
    }
    if (first === minusByte || (first >= zeroByte && first <= nineByte)) return this.#number()
    this.#at = skipValue(bytes, start)
    return parseText(bytes.toString('utf8', start, this.#at))
  }

  #text(): string {
    const bytes = this.#bytes
    const start = this.#at
    const end = plainTextEnd(bytes, start + 1)
    if (bytes[end] !== backslashByte) {
      this.#at = end + 1
      return bytes.toString('utf8', start + 1, end)
    }
    this.#at = skipString(bytes, start)
    return JSON.parse(bytes.toString('utf8', start, this.#at)) as string
  }

  #number(): number {
    const bytes = this.#bytes
    const start = this.#at
    let value = 0
    for (let at = start; at < start + exactDigitsMax; at++) {
      const code = bytes[at]!
      if (code === commaByte || code === closeBraceByte || code === closeBracketByte) {
        this.#at = at
        return value
      }
      if (code < zeroByte || code > nineByte) break
      value = value * 10 + (code - zeroByte)
    }
    this.#at = skipToken(bytes, start)
    return Number(bytes.toString('latin1', start, this.#at))
  }
}

function addPath(members: ReadMember[], path: readonly string[]): void {
  let list = members
  for (const [at, name] of path.entries()) {
    const known = list.find(member => member.name === name)
    if (known !== undefined && known.inner.length === 0) return
    const member = known ?? { name, token: nameToken(name), inner: [] }
    if (known === undefined) list.push(member)
    list = member.inner
    if (at === path.length - 1) return
  }
}

/** Returns the name of a member as canonical JSON has it, with the colon. */
export function nameToken(name: string): Buffer {
  return Buffer.from(`${JSON.stringify(name)}:`)
}

/** Returns which of the members begins at the position. */
export function memberAt<Member extends { readonly token: Uint8Array }>(
  bytes: Uint8Array, at: number, members: readonly Member[],
): Member | undefined {
  for (const member of members) {
    const { token } = member
    let same = 1
    while (same < token.length && bytes[at + same] === token[same]) same++
    if (same === token.length) return member
  }
  return undefined
}
