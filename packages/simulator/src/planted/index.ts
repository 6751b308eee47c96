import { diskBugs } from './disk-bugs.ts'
import { metadataBugs } from './metadata-bugs.ts'
import type { PlantedBug } from './planted-bug.ts'
import { replicaBugs } from './replica-bugs.ts'

export const plantedBugs: readonly PlantedBug[] = [...diskBugs, ...replicaBugs, ...metadataBugs]
