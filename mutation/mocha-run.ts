/** Runs tests with Mocha on a copy of the checkout until one fails. */
import { runNode, type CommandLimits } from './child-process.ts'

const testMsMax = 10_000
const limits: CommandLimits = { totalMsMax: 1_800_000, silenceMsMax: 600_000 }
/** How often a failed test is repeated alone, so that a test that fails by chance does not count. */
const repetitionsMax = 3
/** How often the tests are run when one of them has failed by chance, because a failure ends the run. */
const runsMax = 3

interface TestFailure {
  readonly title: string
  /** Whether the test can be repeated alone. It cannot when the run did not end, or did not start. */
  readonly repeatable: boolean
}

/** Returns the first test of a run that fails, or undefined. */
async function firstFailure(folder: string, files: readonly string[], only?: string): Promise<TestFailure | undefined> {
  let title: string | undefined
  const { status, hangs, lines } = await runNode(folder, [
    'node_modules/mocha/bin/mocha.js', '--no-config', '--require', './scripts/unhandled-rejections.mjs',
    '-n', 'conditions=sectional-source',
    '-n', 'disable-warning=ExperimentalWarning', '--timeout', `${testMsMax}`, '--exit', '--bail',
    '--reporter', 'json-stream', ...(only === undefined ? [] : ['--fgrep', only]), ...files,
  ], limits, line => {
    if (line.startsWith('["fail",')) title ??= (JSON.parse(line) as [string, { fullTitle: string }])[1].fullTitle
  })
  if (title !== undefined) return { title, repeatable: !title.includes(' hook ') }
  if (hangs) return { title: 'the tests do not end', repeatable: false }
  const isOutOfMemory = lines.some(line => line.includes('out of memory'))
  if (isOutOfMemory) return { title: 'the tests run out of memory', repeatable: false }
  if (status !== 0) return { title: `the tests end with status ${status}`, repeatable: false }
  return undefined
}

/**
 * Runs test files of a changed copy until a test fails that fails again alone, and does not fail without the change.
 *
 * @returns the title of that test, or undefined
 */
export async function failingTest(
  copy: string, checkout: string, files: readonly string[],
): Promise<string | undefined> {
  for (let run = 0; run < runsMax; run++) {
    const failure = await firstFailure(copy, files)
    if (failure === undefined || !failure.repeatable) return failure?.title
    const { title } = failure
    for (let count = 0; count < repetitionsMax; count++) {
      if (await firstFailure(copy, files, title) === undefined) continue
      if (await firstFailure(checkout, files, title) === undefined) return title
    }
  }
  return undefined
}
