/**
 * The conformance suite of `IndexReplica`, which each implementation runs under mocha. It is exported as
 * `@sectional/core/index-replica-suite`.
 */
import { answerCases } from './answers.ts'
import { buildCases, contentCases } from './builds.ts'
import { concurrentBuildCases } from './concurrent-builds.ts'
import { findCases } from './finds.ts'
import { IndexFixture, type MakeIndexes } from './index-fixture.ts'
import { largeIndexCases } from './large-indexes.ts'
import { reductionCases, scanCases } from './reads.ts'
import { requiredSequenceCases } from './required-sequences.ts'
import { rowBytesCases } from './row-bytes.ts'
import { upkeepCases } from './upkeep.ts'

export type { MakeIndexes, OpenedIndexes } from './index-fixture.ts'

/**
 * @param name the name of the implementation
 * @param makeIndexes opens indexes over a replica, with the functions of the suite's definitions. It is called once for
 *   each test. `close` must release all resources, also while builds run.
 */
export function indexReplicaSuite(name: string, makeIndexes: MakeIndexes): void {
  describe(`index replica: ${name}`, () => {
    const fixture = new IndexFixture(makeIndexes)
    beforeEach(() => fixture.setUp())
    afterEach(() => fixture.tearDown())
    contentCases(fixture)
    buildCases(fixture)
    concurrentBuildCases(fixture)
    requiredSequenceCases(fixture)
    rowBytesCases(fixture)
    scanCases(fixture)
    reductionCases(fixture)
    answerCases(fixture)
    findCases(fixture)
    largeIndexCases(fixture)
    upkeepCases(fixture)
  })
}
