/** The sum of JSON values: a number, an array of numbers, or an object whose members are such sums. */
import { compareUtf8 } from '../encoding/text-order.ts'
import type { ByteWriter } from '../encoding/byte-writer.ts'
import type { ByteReader } from '../encoding/varint.ts'
import { jsonDepthMax } from '../json/json-limits.ts'
import { isJsonObject } from '../json/json-text.ts'
import { ExactSum } from './exact-sum.ts'
import { quotedText, ReduceFailure } from './reduce-failure.ts'

/** A number that is added to an array is added to its first element. */
type SumNode = ExactSum | ExactSum[] | Map<string, SumNode>

/** Most numbers, arrays and objects in a sum. A member's name counts as one for each eight UTF-16 units. */
const sumNodesMax = 8192
const nameUnits = 8

const sumError = 'The _sum function requires that map values be numbers, arrays of numbers, or objects. Objects cannot '
  + 'be mixed with other data structures. Objects can be arbitrarily nested, provided that the values for all fields '
  + 'are themselves numbers, arrays of numbers, or objects.'

const numberTag = 0
const arrayTag = 1
const objectTag = 2

export class SumTree {
  #root: SumNode | undefined
  /** The number that `sumNodesMax` limits. It only depends on the values that were added, not on their order. */
  #size = 0

  /**
   * @param value as JSON.parse returns it, nested at most `jsonDepthMax` deep
   * @throws ReduceFailure when the value cannot be added. The tree must not be used any more.
   */
  add(value: unknown): void {
    if (typeof value === 'number' && this.#root instanceof ExactSum) this.#root.add(value)
    else this.#root = this.#addValue(this.#root, value)
  }

  /**
   * @param depth 1, or the depth of the sum as a member of another one
   * @throws RangeError when the bytes are not a sum; ReduceFailure like `add`
   */
  addEncoded(reader: ByteReader, depth = 1): void {
    this.#root = this.#addNode(this.#root, reader, depth)
  }

  encode(writer: ByteWriter): void {
    encodeNode(this.#root!, writer)
  }

  /**
   * Returns the sum as JSON text, with the members of objects in the order of their names. As in CouchDB, which adds
   * to the number 0, the sum of empty arrays is `[0]`.
   */
  toJson(): string {
    const root = this.#root!
    return Array.isArray(root) && root.length === 0 ? '[0]' : jsonOf(root)
  }

  #addValue(node: SumNode | undefined, value: unknown): SumNode {
    if (typeof value === 'number') {
      if (node instanceof Map) throw unsummable(value)
      const target = this.#numberAt(node)
      firstOf(target).add(value)
      return target
    }
    if (Array.isArray(value)) {
      if (node instanceof Map || !value.every(element => typeof element === 'number')) throw unsummable(value)
      const target = this.#arrayAt(node, value.length)
      for (const [index, element] of value.entries()) target[index]!.add(element)
      return target
    }
    if (!isJsonObject(value) || !(node === undefined || node instanceof Map)) throw unsummable(value)
    const target = this.#objectAt(node)
    for (const [name, member] of Object.entries(value)) {
      target.set(name, this.#addValue(this.#member(target, name), member))
    }
    return target
  }

  #addNode(node: SumNode | undefined, reader: ByteReader, depth: number): SumNode {
    const start = reader.offset
    const tag = reader.byte()
    if (tag === numberTag) {
      if (node instanceof Map) throw mixedSum(reader, start, depth)
      const target = this.#numberAt(node)
      firstOf(target).addEncoded(reader)
      return target
    }
    const count = reader.varint()
    if (count > sumNodesMax) throw new RangeError('a sum has too many members')
    if (tag === arrayTag) {
      if (node instanceof Map) throw mixedSum(reader, start, depth)
      const target = this.#arrayAt(node, count)
      for (let index = 0; index < count; index++) target[index]!.addEncoded(reader)
      return target
    }
    if (tag !== objectTag) throw new RangeError(`${tag} is not the tag of a sum`)
    if (depth > jsonDepthMax) throw new RangeError('a sum is nested too deep')
    if (!(node === undefined || node instanceof Map)) throw mixedSum(reader, start, depth)
    const target = this.#objectAt(node)
    for (let left = count; left > 0; left--) {
      const name = reader.text(reader.varint(), 'utf8')
      target.set(name, this.#addNode(this.#member(target, name), reader, depth + 1))
    }
    return target
  }

  /** Returns the node to which a number is added. */
  #numberAt(node: ExactSum | ExactSum[] | undefined): ExactSum | ExactSum[] {
    if (node === undefined) {
      this.#grow(1)
      return new ExactSum()
    }
    if (Array.isArray(node) && node.length === 0) this.#extend(node, 1)
    return node
  }

  #arrayAt(node: ExactSum | ExactSum[] | undefined, length: number): ExactSum[] {
    if (!Array.isArray(node)) this.#grow(1)
    const target = node === undefined ? [] : Array.isArray(node) ? node : [node]
    this.#extend(target, length)
    return target
  }

  #objectAt(node: Map<string, SumNode> | undefined): Map<string, SumNode> {
    if (node !== undefined) return node
    this.#grow(1)
    return new Map<string, SumNode>()
  }

  #member(target: Map<string, SumNode>, name: string): SumNode | undefined {
    const member = target.get(name)
    if (member === undefined) this.#grow(Math.ceil(name.length / nameUnits))
    return member
  }

  #extend(target: ExactSum[], length: number): void {
    if (length <= target.length) return
    this.#grow(length - target.length)
    while (target.length < length) target.push(new ExactSum())
  }

  /** @throws ReduceFailure when the sum becomes too large */
  #grow(added: number): void {
    this.#size += added
    if (this.#size <= sumNodesMax) return
    const limit = `a sum may contain ${sumNodesMax} numbers, arrays and objects`
    throw new ReduceFailure(`Reduce output must shrink more rapidly: ${limit}`, 'null')
  }
}

/** Returns the failure of adding the encoded sum at an offset of the reader: it names this sum. */
function mixedSum(reader: ByteReader, offset: number, depth: number): ReduceFailure {
  reader.offset = offset
  const added = new SumTree()
  added.addEncoded(reader, depth)
  return notSummable(added.toJson())
}

/** Returns the number itself, or the first element of an array. */
function firstOf(node: ExactSum | ExactSum[]): ExactSum {
  return Array.isArray(node) ? node[0]! : node
}

function unsummable(value: unknown): ReduceFailure {
  return notSummable(JSON.stringify(value))
}

function notSummable(json: string): ReduceFailure {
  return new ReduceFailure(sumError, quotedText(json))
}

function encodeNode(node: SumNode, writer: ByteWriter): void {
  if (node instanceof ExactSum) {
    writer.byte(numberTag)
    node.encode(writer)
  } else if (Array.isArray(node)) {
    writer.byte(arrayTag)
    writer.varint(node.length)
    for (const element of node) element.encode(writer)
  } else {
    writer.byte(objectTag)
    writer.varint(node.size)
    for (const [name, member] of node) {
      writer.text(name)
      encodeNode(member, writer)
    }
  }
}

function jsonOf(node: SumNode): string {
  if (node instanceof ExactSum) {
    const json = node.toJson()
    if (json !== undefined) return json
    throw new ReduceFailure('The sum is beyond the range of doubles', 'null')
  }
  if (Array.isArray(node)) return `[${node.map(jsonOf).join(',')}]`
  const members = [...node].toSorted(([a], [b]) => compareUtf8(a, b))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${jsonOf(member)}`).join(',')}}`
}
