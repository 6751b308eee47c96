/**
 * The conformance suite of `ShardReplica`, which each implementation runs under mocha. It is exported as
 * `@sectional/core/shard-replica-suite`.
 */
import { attachmentCases, blobCases } from './attachments.ts'
import { attemptCases } from './attempts.ts'
import { callCases } from './calls.ts'
import { convergenceCases, digestCases } from './convergence.ts'
import { editCases, orderCases, replicatedCases, tombstoneCases } from './edits.ts'
import { localDocumentCases, localMergeCases } from './local-documents.ts'
import { purgeCases, purgeOrderCases, upkeepCases } from './purges.ts'
import { readCases } from './reads.ts'
import { type MakeReplica, ReplicaFixture } from './replica-fixture.ts'
import { changeScanCases, changeWaitCases, documentScanCases, longScanCases } from './scans.ts'

export type { MakeReplica, OpenedReplica } from './replica-fixture.ts'

/**
 * @param name the name of the implementation
 * @param makeReplica opens a replica without documents. It is called once for each test, and again when a test compares
 *   two replicas. `close` must release all resources.
 */
export function shardReplicaSuite(name: string, makeReplica: MakeReplica): void {
  describe(`shard replica: ${name}`, () => {
    const fixture = new ReplicaFixture(makeReplica)
    beforeEach(() => fixture.setUp())
    afterEach(() => fixture.tearDown())
    editCases(fixture)
    orderCases(fixture)
    tombstoneCases(fixture)
    attemptCases(fixture)
    replicatedCases(fixture)
    readCases(fixture)
    documentScanCases(fixture)
    changeScanCases(fixture)
    changeWaitCases(fixture)
    longScanCases(fixture)
    localDocumentCases(fixture)
    localMergeCases(fixture)
    convergenceCases(fixture)
    digestCases(fixture)
    purgeCases(fixture)
    purgeOrderCases(fixture)
    upkeepCases(fixture)
    callCases(fixture)
    blobCases(fixture)
    attachmentCases(fixture)
  })
}
