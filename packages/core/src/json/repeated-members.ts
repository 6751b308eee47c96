/** Members of one name in one object: only the last one stands, where it stands, as for JSON.parse. */
import { openBraceByte, quoteByte, spaceByte } from './json-bytes.ts'
import { plainName } from './json-check.ts'
import { JsonReader } from './json-reader.ts'

/** Members between two yields. */
const sliceMembers = 10_000

export interface BlankedJson {
  /** A copy of the JSON with white space in place of each member that a later one replaces. */
  readonly bytes: Buffer
  /**
   * Where the last member of the outermost object with this name, as JSON text, begins in the bytes that were given.
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
  // An outer member was found behind the inner ones: backwards, no byte is written twice.
  for (let i = replaced.length - 2; i >= 0; i -= 2) {
    const from = replaced[i]! - start
    if (blanked[from] === quoteByte) blanked.fill(spaceByte, from, replaced[i + 1]! - start)
    if (i % sliceMembers === 0) yield
  }
  return { bytes: blanked, startOf: name => finder.startOf(name) }
}

/** The members of an open object so far: where each begins, and the last one of each name. */
interface OpenObject { readonly starts: number[]; readonly last: Map<string, number> }

class RepeatFinder extends JsonReader {
  /** One for each open bracket; null for a list. */
  readonly #objects: (OpenObject | null)[] = []
  #outermost: OpenObject | null = null
  /** From the name of each member that is replaced to the name of the member that follows it. */
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
