/** What the fuzzer runs: a generator of inputs and a property that must hold for each of them. */
import fc from 'fast-check'

export interface FuzzTarget<Input = unknown> {
  readonly name: string
  /** The property, in one sentence. */
  readonly property: string
  readonly inputs: fc.Arbitrary<Input>
  /** Inputs of one run of the test suite. */
  readonly runsInTests: number
  /** Throws, or returns a promise that rejects, when the property does not hold. */
  readonly check: (input: Input) => void | Promise<void>
}

export function target<Input>(definition: FuzzTarget<Input>): FuzzTarget {
  return definition as FuzzTarget
}

/** An input that violates the property. */
export interface Finding {
  readonly target: string
  readonly seed: number
  /** Leads fast-check to the input; empty: all inputs of the seed. */
  readonly path: string
  readonly input: string
  readonly error: string
}

/** Inputs of one seed. */
export const batchRuns = 100

/** Checks the inputs of one seed, or the single one of `path`. Returns the shortest violation, or null. */
export async function checkSeed(
  { name, inputs, check }: FuzzTarget, seed: number, options: { readonly runs?: number; readonly path?: string } = {},
): Promise<Finding | null> {
  const property = fc.asyncProperty(inputs, async input => { await check(input) })
  const result = await fc.check(property, { seed, numRuns: options.runs ?? batchRuns, path: options.path })
  if (!result.failed) return null
  const { errorInstance, counterexample, counterexamplePath } = result
  const error = errorInstance instanceof Error ? errorInstance.stack ?? errorInstance.message : String(errorInstance)
  return { target: name, seed, path: counterexamplePath ?? '', input: fc.stringify(counterexample?.[0]), error }
}

export function replayCommand({ target: name, seed, path }: Pick<Finding, 'target' | 'seed' | 'path'>): string {
  return `scripts/fuzz --target ${name} --seed ${seed}${path === '' ? '' : ` --path ${path}`}`
}
