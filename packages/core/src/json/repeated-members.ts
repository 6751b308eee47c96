/** Removes repeated members of objects: of several members with one name only the last remains, as with JSON.parse. */
import { openBraceByte, quoteByte, spaceByte } from './json-bytes.ts'
import { plainName } from './json-check.ts'
import { JsonReader } from './json-reader.ts'

/** Number of members between two yields. */
const sliceMembers = 10_000

export interface BlankedJson {
  /** A copy of the JSON with white space in place of each member that a later one replaces. */
  readonly bytes: Buffer
  /**
   * Returns the position, in the given bytes, of the last member of the outermost object that has this name. The name
   * is JSON text, with its quotes.
   */
  readonly startOf: (name: string) => number | undefined
}

/**
 * Overwrites repeated members of a JSON object, at all depths and in slices.
 *
 * @param bytes UTF-8, with a valid JSON object from `start` to before `end`
 * @throws ApiError `bad_request` when nested deeper than `jsonDepthMax`
 */
export function* blankRepeatedMembers(bytes: Uint8Array, start: number, end: number): Generator<void, BlankedJson> {
  const finder = new RepeatFinder(bytes, start)
  while (!finder.run()) yield
  const blanked = Buffer.from(bytes.subarray(start, end))
  const { replaced } = finder
  // A member is listed after the members inside its value, so backwards no byte is overwritten twice.
  for (let i = replaced.length - 2; i >= 0; i -= 2) {
    const from = replaced[i]! - start
    if (blanked[from] === quoteByte) blanked.fill(spaceByte, from, replaced[i + 1]! - start)
    if (i % sliceMembers === 0) yield
  }
  return { bytes: blanked, startOf: name => finder.startOf(name) }
}

/** The members of an open object so far. `last` maps a name to the index, in `starts`, of its last member. */
interface OpenObject { readonly starts: number[]; readonly last: Map<string, number> }

class RepeatFinder extends JsonReader {
  /** One entry for each open bracket; null for an array. */
  readonly #objects: (OpenObject | null)[] = []
  #outermost: OpenObject | null = null
  /** Pairs of positions: the start of each replaced member, and the start of the member that follows it. */
  readonly replaced: number[] = []

  startOf(name: string): number | undefined {
    const index = this.#outermost?.last.get(name)
    return index === undefined ? undefined : this.#outermost?.starts[index]
  }

  protected override opened(code: number): void {
    const object = code === openBraceByte ? { starts: [], last: new Map<string, number>() } : null
    if (this.#objects.length === 0) this.#outermost = object
    this.#objects.push(object)
  }

  protected override named(start: number, end: number): void {
    const { starts, last } = this.#objects.at(-1)!
    const name = plainName(this.bytes, start, end)
    const earlier = last.get(name)
    last.set(name, starts.length)
    starts.push(start)
    if (earlier !== undefined) this.replaced.push(starts[earlier]!, starts[earlier + 1]!)
  }

  protected override scalar(): void {}

  protected override closed(): void {
    this.#objects.pop()
  }
}
