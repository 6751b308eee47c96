/** Limits the work of reading a selector or of matching a document, so that neither blocks the thread for long. */
import { SelectorError } from './selector-error.ts'

/**
 * Most steps to read a selector or to match a document. A step takes some tenths of a microsecond. It is a condition,
 * an element of an array, half a member of an object, or some characters.
 */
export const selectorStepsMax = 1_000_000

/** How many characters are compared in one step. */
const stepCharacters = 64
/** Of how many characters a sort key is made in one step. */
const keyCharacters = 4

export class Effort {
  #left = selectorStepsMax
  readonly #what: string

  /** @param what the work, for the error text */
  constructor(what: string) {
    this.#what = what
  }

  /** Begins the same work anew. */
  begin(): void {
    this.#left = selectorStepsMax
  }

  /** @throws SelectorError when more than `selectorStepsMax` steps have been spent */
  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0) {
      const limit = `${selectorStepsMax} steps (conditions times the elements on which each is tested)`
      throw new SelectorError(
        'bad_arg', `${this.#what} takes more than ${limit}; use fewer or less nested conditions`,
      )
    }
  }

  /** @param characters the length of the name of a field, which is split at its dots */
  spendFieldName(characters: number): void {
    this.spend(characters)
  }

  spendNames(names: number): void {
    this.spend(2 * names)
  }

  spendText(characters: number): void {
    this.spend(characters / stepCharacters)
  }

  /** @param characters of a text whose sort key is made */
  spendKey(characters: number): void {
    this.spend(characters / keyCharacters)
  }
}
