import { attachmentBugs } from './attachment-bugs.ts'
import { damageBugs } from './damage-bugs.ts'
import { diskBugs } from './disk-bugs.ts'
import { feedBugs } from './feed-bugs.ts'
import { failoverBugs } from './failover-bugs.ts'
import { faultBugs } from './fault-bugs.ts'
import { historyBugs } from './history-bugs.ts'
import { metadataBugs } from './metadata-bugs.ts'
import type { PlantedBug } from './planted-bug.ts'
import { purgeBugs } from './purge-bugs.ts'
import { replicaBugs } from './replica-bugs.ts'
import { validationBugs } from './validation-bugs.ts'
import { viewBugs } from './view-bugs.ts'

export const plantedBugs: readonly PlantedBug[] = [
  ...diskBugs, ...replicaBugs, ...metadataBugs, ...faultBugs, ...feedBugs, ...purgeBugs, ...attachmentBugs,
  ...damageBugs, ...viewBugs, ...validationBugs, ...historyBugs, ...failoverBugs,
]
