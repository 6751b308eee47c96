import type { Drill } from './drill.ts'
import { autoPurgeDrill } from './auto-purge-drill.ts'
import { branchLimitDrill } from './branch-limit-drill.ts'
import { brokenListDrill } from './broken-list-drill.ts'
import { brokenViewDrill } from './broken-view-drill.ts'
import { compactionDrill } from './compaction-drill.ts'
import { contestedEditsDrill } from './contested-edits-drill.ts'
import { cutOffPurgeDrill } from './cut-off-purge-drill.ts'
import { droppedShardsDrill } from './dropped-shards-drill.ts'
import { falseCheckpointDrill } from './false-checkpoint-drill.ts'
import { fullDiskDrill } from './full-disk-drill.ts'
import { knownMetadataDrill } from './known-metadata-drill.ts'
import { laggingReplicaDrill } from './lagging-replica-drill.ts'
import { lateRulesDrill } from './late-rules-drill.ts'
import { leaderChangeDrill } from './leader-change-drill.ts'
import { listPartsDrill } from './list-parts-drill.ts'
import { localDocumentDrill } from './local-document-drill.ts'
import { lostPieceDrill } from './lost-piece-drill.ts'
import { lostRecorderDrill } from './lost-recorder-drill.ts'
import { lostSeedDrill } from './lost-seed-drill.ts'
import { manyDocumentsDrill } from './many-documents-drill.ts'
import { mapChangeDrill } from './map-change-drill.ts'
import { missingNodeDrill } from './missing-node-drill.ts'
import { lostWritesDrill, olderDiskDrill } from './older-disk-drill.ts'
import { promisedDeletionDrill } from './promised-deletion-drill.ts'
import { readRepairDrill } from './read-repair-drill.ts'
import { recoveryDrill } from './recovery-drill.ts'
import { refillDrill } from './refill-drill.ts'
import { removedSourceDrill } from './removed-source-drill.ts'
import { replicationDrill } from './replication-drill.ts'
import { restartDrill } from './restart-drill.ts'
import { silentNodeDrill } from './silent-node-drill.ts'
import { slowFeedsDrill } from './slow-feeds-drill.ts'
import { staleEventDrill } from './stale-event-drill.ts'
import { staleMetadataDrill } from './stale-metadata-drill.ts'
import { tokenDrill } from './token-drill.ts'
import { unseenPurgesDrill } from './unseen-purges-drill.ts'
import { usersDrill } from './users-drill.ts'

/** The drills by the names of the rules that they examine. */
export const drills: Readonly<Record<string, Drill>> = {
  'fresh-after-start': restartDrill, 'no-stale-decisions': fullDiskDrill, 'writes-in-time': silentNodeDrill,
  'older-disk': olderDiskDrill, 'lost-seed': lostSeedDrill, 'purged-everywhere': cutOffPurgeDrill,
  'no-false-absence': staleMetadataDrill, 'lost-writes': lostWritesDrill,
  'contested-edits': contestedEditsDrill, 'map-change': mapChangeDrill,
  'broken-list': brokenListDrill, 'copied-completely': replicationDrill,
  'leader-change': leaderChangeDrill, 'reads-meet-writes': laggingReplicaDrill, 'fresh-while-filled': refillDrill,
  'list-parts': listPartsDrill, 'auto-purge': autoPurgeDrill, 'lost-recorder': lostRecorderDrill,
  'repaired-by-reads': readRepairDrill, 'tokens-hold': tokenDrill, 'newest-locals': localDocumentDrill,
  'known-after-start': knownMetadataDrill, 'promise-first': promisedDeletionDrill, 'users-served': usersDrill,
  'feeds-follow': slowFeedsDrill, 'branches-limited': branchLimitDrill, 'bodies-removed': compactionDrill,
  'dropped-cleared': droppedShardsDrill, 'late-rules': lateRulesDrill,
  'purges-unseen': unseenPurgesDrill, 'metadata-arrives': lostPieceDrill,
  'source-removed': removedSourceDrill, 'recovered-alone': recoveryDrill, 'events-told': staleEventDrill,
  'broken-view': brokenViewDrill, 'parts-exact': manyDocumentsDrill, 'served-without-one': missingNodeDrill,
  // It must be the last one: checkpoints are false afterwards.
  'digests-compared': falseCheckpointDrill,
}

const drillMsMax = 600_000
/** Drills in which all machines are suspended for hours. */
const suspendedMsMax: Readonly<Record<string, number>> = { 'auto-purge': 12 * 3_600_000 }

/** Returns the simulated milliseconds after which a drill has failed, because the cluster does not come to rest. */
export function durationMax(name: string): number {
  return suspendedMsMax[name] ?? drillMsMax
}
