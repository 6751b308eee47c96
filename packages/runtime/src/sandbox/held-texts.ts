import type { SandboxFunction } from './sandbox.ts'

/** Shorter texts count for each call, so that few texts have to be compared. */
const sharedLengthMin = 4096

interface HeldText { readonly text: string; calls: number }

/**
 * Counts the texts of the functions of calls: sources and modules, which may have megabytes. A text that several calls
 * of a database have is in memory once, and counts once.
 */
export class HeldTexts {
  readonly #held = new Map<string, HeldText[]>()
  #length = 0

  /** Length of all texts. */
  get length(): number {
    return this.#length
  }

  /** Returns by how much a call of the function would add to the length. */
  added({ database, source, modules }: SandboxFunction): number {
    const held = this.#held.get(database) ?? []
    const isNew = (text: string): boolean => text.length < sharedLengthMin || !held.some(other => other.text === text)
    return [source, modules].filter(isNew).reduce((sum, { length }) => sum + length, 0)
  }

  add({ database, source, modules }: SandboxFunction): void {
    for (const text of [source, modules]) this.#add(database, text)
  }

  remove({ database, source, modules }: SandboxFunction): void {
    for (const text of [source, modules]) this.#remove(database, text)
  }

  #add(database: string, text: string): void {
    if (text.length >= sharedLengthMin) {
      const held = this.#held.get(database) ?? []
      const known = held.find(other => other.text === text)
      if (known !== undefined) {
        known.calls++
        return
      }
      this.#held.set(database, [...held, { text, calls: 1 }])
    }
    this.#length += text.length
  }

  #remove(database: string, text: string): void {
    if (text.length >= sharedLengthMin) {
      const held = this.#held.get(database)!
      const known = held.find(other => other.text === text)!
      if (--known.calls > 0) return
      if (held.length === 1) this.#held.delete(database)
      else this.#held.set(database, held.filter(other => other !== known))
    }
    this.#length -= text.length
  }
}
