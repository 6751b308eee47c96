/**
 * What every `ShardReplica` promises; each implementation runs it under mocha. Exported as
 * `@sectional/core/shard-replica-suite`.
 */
import { attachmentCases, blobCases } from './shard-replica-suite/attachments.ts'
import { attemptCases } from './shard-replica-suite/attempts.ts'
import { callCases } from './shard-replica-suite/calls.ts'
import { convergenceCases, digestCases } from './shard-replica-suite/convergence.ts'
import { editCases, orderCases, replicatedCases, tombstoneCases } from './shard-replica-suite/edits.ts'
import { localDocumentCases, localMergeCases } from './shard-replica-suite/local-documents.ts'
import { purgeCases, upkeepCases } from './shard-replica-suite/purges.ts'
import { readCases } from './shard-replica-suite/reads.ts'
import { type MakeReplica, ReplicaFixture } from './shard-replica-suite/replica-fixture.ts'
import { changeScanCases, changeWaitCases, documentScanCases, longScanCases } from './shard-replica-suite/scans.ts'

export type { MakeReplica, OpenedReplica } from './shard-replica-suite/replica-fixture.ts'

/**
 * @param name of the implementation
 * @param makeReplica opens a replica without documents; called once per test and again where a test compares
 *   two replicas. `close` must leave nothing behind.
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
    upkeepCases(fixture)
    callCases(fixture)
    blobCases(fixture)
    attachmentCases(fixture)
  })
}
