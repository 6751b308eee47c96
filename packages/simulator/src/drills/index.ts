import type { Drill } from './drill.ts'
import { contestedEditsDrill } from './contested-edits-drill.ts'
import { cutOffPurgeDrill } from './cut-off-purge-drill.ts'
import { fullDiskDrill } from './full-disk-drill.ts'
import { lostSeedDrill } from './lost-seed-drill.ts'
import { lostWritesDrill, olderDiskDrill } from './older-disk-drill.ts'
import { restartDrill } from './restart-drill.ts'
import { silentNodeDrill } from './silent-node-drill.ts'
import { staleMetadataDrill } from './stale-metadata-drill.ts'

/** The drills by the names of the rules that they examine. */
export const drills: Readonly<Record<string, Drill>> = {
  'fresh-after-start': restartDrill, 'no-stale-decisions': fullDiskDrill, 'writes-in-time': silentNodeDrill,
  'older-disk': olderDiskDrill, 'lost-seed': lostSeedDrill, 'purged-everywhere': cutOffPurgeDrill,
  'no-false-absence': staleMetadataDrill, 'lost-writes': lostWritesDrill,
  'contested-edits': contestedEditsDrill,
}
