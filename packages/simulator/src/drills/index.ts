import type { Drill } from './drill.ts'
import { brokenListDrill } from './broken-list-drill.ts'
import { contestedEditsDrill } from './contested-edits-drill.ts'
import { cutOffPurgeDrill } from './cut-off-purge-drill.ts'
import { falseCheckpointDrill } from './false-checkpoint-drill.ts'
import { fullDiskDrill } from './full-disk-drill.ts'
import { leaderChangeDrill } from './leader-change-drill.ts'
import { lostSeedDrill } from './lost-seed-drill.ts'
import { mapChangeDrill } from './map-change-drill.ts'
import { lostWritesDrill, olderDiskDrill } from './older-disk-drill.ts'
import { replicationDrill } from './replication-drill.ts'
import { restartDrill } from './restart-drill.ts'
import { silentNodeDrill } from './silent-node-drill.ts'
import { staleMetadataDrill } from './stale-metadata-drill.ts'

/** The drills by the names of the rules that they examine. */
export const drills: Readonly<Record<string, Drill>> = {
  'fresh-after-start': restartDrill, 'no-stale-decisions': fullDiskDrill, 'writes-in-time': silentNodeDrill,
  'older-disk': olderDiskDrill, 'lost-seed': lostSeedDrill, 'purged-everywhere': cutOffPurgeDrill,
  'no-false-absence': staleMetadataDrill, 'lost-writes': lostWritesDrill,
  'contested-edits': contestedEditsDrill, 'map-change': mapChangeDrill,
  'broken-list': brokenListDrill, 'copied-completely': replicationDrill,
  'leader-change': leaderChangeDrill,
  // It must be the last one: checkpoints are false afterwards.
  'digests-compared': falseCheckpointDrill,
}
