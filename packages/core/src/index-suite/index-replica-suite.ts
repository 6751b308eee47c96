/**
 * The conformance suite of `IndexReplica`, which each implementation runs under mocha. It is exported as
 * `@sectional/core/index-replica-suite`.
 */
import { buildCases, contentCases } from './builds.ts'
import { IndexFixture, type MakeIndexes } from './index-fixture.ts'
import { reductionCases, scanCases } from './reads.ts'
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
    scanCases(fixture)
    reductionCases(fixture)
    upkeepCases(fixture)
  })
}
