import type { Dice } from '../world/dice.ts'
import { drawNodeLimits } from './node-limits.ts'
import type { NodeLimits } from './node-limits.ts'

/**
 * The options of one run, which are drawn from the seed and printed first. Times are milliseconds of simulated time.
 */
export interface SwarmOptions {
  readonly nodes: number
  /** Number of nodes that exist from the beginning and are in the seed lists. The others join later. */
  readonly founders: number
  readonly databases: readonly DatabaseOptions[]
  /** Whether the databases are partitioned. Clients then define no views and no indexes. */
  readonly partitioned: boolean
  readonly clients: number
  readonly operationsPerClient: number
  /** Number of further clients, which only create and delete the same few databases. */
  readonly nameClients: number
  /** Number of hosts in the seed list of each node: all founders, or the first one only. */
  readonly seeds: number
  /** Whether creations and deletions of databases are recorded (`_db_updates`). */
  readonly databaseEvents: boolean
  /** Number of readers of changes feeds. */
  readonly readers: number
  readonly readsPerReader: number
  /** Mean pause of a client between two operations. */
  readonly thinkMs: number
  readonly documentsPerDatabase: number
  /** Maximum documents of one bulk request. */
  readonly bulkMax: number
  /** Snapshot limits of the metadata log; undefined: those of production, which a run never reaches. */
  readonly snapshots: { readonly snapshotEntries: number; readonly trailingEntries: number } | undefined
  /** Milliseconds of a tick of the consensus. That of production is drawn less often, because heartbeats cost most. */
  readonly consensusTickMs: number
  /** Small limits of every node; undefined: those of production. */
  readonly limits: NodeLimits | undefined
  /** `_revs_limit` of every database; undefined: the default. */
  readonly revsLimit: number | undefined
  /** Share of the edits whose content other edits have too (`workload/shared-values`). */
  readonly sharedValueShare: number
  /** Maximum bytes of the padding of a document. */
  readonly documentBytesMax: number
  /** Maximum bytes of an attachment. */
  readonly attachmentBytesMax: number
  readonly r: number | undefined
  readonly w: number | undefined
  /** Weights of the clients' actions, by name. */
  readonly operations: Readonly<Record<string, number>>
  readonly linkDelayMs: { readonly min: number; readonly max: number }
  readonly clockDrift: number
  readonly clockOffsetMs: number
  readonly syncDelayMs: { readonly min: number; readonly max: number }
  /** Time without requests at the end: 0, or long enough for leases to expire and for every node to sweep. */
  readonly idleMs: number
  /** Whether all machines are suspended for this time, which costs little of the simulator's own time. */
  readonly idleSuspended: boolean
  /**
   * A suspension of all machines that is so long that everything that nodes do periodically is due afterwards, with the
   * intervals of production: `ms` is its length, and `afterFaults` the number of faults before it. undefined: there is
   * none.
   */
  readonly suspension: { readonly afterFaults: number; readonly ms: number } | undefined
  /** Share of the drills that end the run (`drills/`). */
  readonly drillShare: number
  /** Probability that the run ends with an exercise of replicas (`drills/replica-exercise.ts`). */
  readonly exerciseShare: number
  /** Mean pause between two faults; Infinity means no faults. */
  readonly faultPauseMs: number
  readonly faultMsMax: number
  readonly faults: Readonly<Record<FaultName, number>>
}

export interface DatabaseOptions {
  readonly name: string
  readonly q: number
  readonly n: number
  /** Whether clients delete and re-create the database. */
  readonly fleeting: boolean
}

/** The part of an action that is needed to draw its weight in a run. */
export interface DrawnAction {
  readonly name: string
  /** Weight relative to other actions. */
  readonly weight: number
  /** Actions of one family are omitted from some runs together. */
  readonly family?: ActionFamily
}

export interface ActionFamily {
  readonly name: string
  readonly leftOutChance: number
}

export const faultNames = [
  'crash', 'stop', 'pause', 'partition', 'isolate-one', 'isolate-leader', 'one-way', 'slow-link', 'kill-connections',
  'drop-connections',
  'slow-disk', 'full-disk', 'failing-disk', 'failing-reads', 'jump-clock', 'crash-all', 'lose-disk',
  'linger-connections', 'cross-dial', 'leave',
] as const
export const damageNames = ['damage-record', 'damage-blob', 'damage-log'] as const
export const missingNames = ['lose-batches'] as const
export const indexDamageNames = ['damage-index'] as const
export const upkeepNames = ['restart-all'] as const
export type FaultName = (typeof faultNames)[number] | (typeof damageNames)[number] | (typeof missingNames)[number]
  | (typeof indexDamageNames)[number] | (typeof upkeepNames)[number]

/** @param actions the actions that clients may do; their order determines what a seed draws */
export function drawSwarmOptions(dice: Dice, actions: readonly DrawnAction[]): SwarmOptions {
  const drawn = drawOptions(dice, actions)
  const options = drawn.partitioned ? { ...drawn, operations: withoutViews(drawn.operations, actions) } : drawn
  const { faultPauseMs, operations } = options
  if (faultPauseMs === Infinity) return options
  const purges = actions.some(({ name, family }) => family?.name === 'purges' && operations[name]! > 0)
  const limits = [1, 2, 5, 20, undefined, ...purges ? [undefined, undefined, undefined] : []]
  return { ...options, revsLimit: dice.fork('revsLimit').pick(limits) }
}

/** Leaves out the actions that concern views and indexes. */
function withoutViews(
  weights: Readonly<Record<string, number>>, actions: readonly DrawnAction[],
): Readonly<Record<string, number>> {
  const left = actions.filter(({ family }) => family !== undefined && viewFamilies.has(family.name))
  return { ...weights, ...Object.fromEntries(left.map(({ name }) => [name, 0])) }
}

function drawOptions(dice: Dice, actions: readonly DrawnAction[]): SwarmOptions {
  const nodes = dice.pick([1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 5, dice.pick([6, 7])])
  const founders = dice.chance(0.75) ? nodes : dice.integer(1, nodes)
  const calm = dice.chance(0.12)
  const linkMin = dice.pick([0.05, 0.2, 1])
  const syncMin = dice.pick([0, 0.1, 1])
  return {
    nodes, founders, seeds: dice.fork('seeds').chance(0.2) ? 1 : founders,
    databases: [...drawDatabases(dice, nodes), ...drawCrowd(dice.fork('crowd'))],
    partitioned: dice.fork('partitioned').chance(0.15), databaseEvents: dice.fork('events').chance(0.25),
    clients: dice.integer(1, 6),
    operationsPerClient: dice.integer(8, 32),
    nameClients: dice.fork('names').pick([0, 0, 0, 0, 3]),
    thinkMs: dice.pick([5, 50, 200, 600, 1500]),
    documentsPerDatabase: dice.pick([1, 2, 5, 20, 60, 2000]),
    documentBytesMax: dice.pick([0, 100, 2000, 60_000]),
    r: dice.pick([undefined, undefined, 1, 2, nodes]),
    w: dice.pick([undefined, undefined, 1, 2, nodes]),
    operations: drawActions(dice, actions),
    linkDelayMs: { min: linkMin, max: linkMin + dice.pick([0.1, 2, 20]) },
    clockDrift: dice.pick([0, 0.0001, 0.01]),
    clockOffsetMs: dice.pick([0, 100, 3_600_000]),
    syncDelayMs: { min: syncMin, max: syncMin + dice.pick([0, 2, 10]) },
    faultPauseMs: calm ? Infinity : dice.pick([300, 1000, 3000, 8000]),
    faultMsMax: dice.pick([500, 3000, 15_000, 90_000, 600_000]),
    faults: { ...drawFaults(dice), ...thinned(dice.fork('damage'), damageNames, usualDamage, 0.6), ...thinned(
      dice.fork('missing'), missingNames, { 'lose-batches': 5 }, 0.6,
    ), ...thinned(dice.fork('index damage'), indexDamageNames, { 'damage-index': 6 }, 0.6),
    ...thinned(dice.fork('upkeep'), upkeepNames, { 'restart-all': 2 }, 0.5) },
    bulkMax: dice.pick([4, 8, 8, 8, 8, 300]),
    attachmentBytesMax: dice.pick([30, 1000, 100_000, 600_000]),
    readers: dice.pick([0, 1, 1, 2]),
    readsPerReader: dice.integer(5, 30),
    ...drawIdleTime(dice.chance(0.03) && nodes <= 3, dice.fork('idle suspended')),
    sharedValueShare: dice.fork('shared values').pick([0, 0.2, 0.6, 0.9]),
    revsLimit: calm ? dice.pick([undefined, 5, 20]) : undefined,
    snapshots: drawSnapshots(dice.fork('snapshots')),
    consensusTickMs: dice.fork('consensus tick').pick([100, 200, 200]),
    exerciseShare: 0.2,
    drillShare: dice.fork('drills').pick([0, 0, 0.4]),
    ...drawPeriods(dice),
  }
}

/** @param awake whether the nodes run during that time */
function drawIdleTime(awake: boolean, dice: Dice): Pick<SwarmOptions, 'idleMs' | 'idleSuspended'> {
  const idleSuspended = !awake && dice.chance(0.4)
  return { idleMs: awake || idleSuspended ? 100 * 60_000 : 0, idleSuspended }
}

/** Digests of replicas are compared at a small interval, or after a suspension at that of production, or neither. */
function drawPeriods(dice: Dice): Pick<SwarmOptions, 'limits' | 'suspension'> {
  const limits = drawNodeLimits(dice.fork('limits'))
  const drawn = dice.fork('suspension')
  if (!drawn.chance(suspensionChance)) return { limits, suspension: undefined }
  const { digestIntervalMs, ...antiEntropy } = limits?.antiEntropy ?? {}
  return {
    limits: limits && { ...limits, antiEntropy },
    suspension: { afterFaults: drawn.integer(1, 5), ms: drawn.between(suspensionMs.min, suspensionMs.max) },
  }
}

function drawDatabases(dice: Dice, nodes: number): DatabaseOptions[] {
  const one = (name: string, fleeting: boolean): DatabaseOptions => ({
    name, q: dice.pick([1, 2, 4, 8]), n: dice.pick([1, 2, 3, 3, 3, nodes]), fleeting,
  })
  const fleeting = dice.pick([0, 0, 1, 2])
  return [one('kept', false), ...Array.from({ length: fleeting }, (_, index) => one(`fleeting${index + 1}`, true))]
}

/**
 * Draws more databases for some runs, or one with many shards, so that the queues of anti-entropy passes and the limits
 * of calls to one node are reached.
 */
function drawCrowd(dice: Dice): DatabaseOptions[] {
  const kind = dice.weighted({ none: 18, many: 1, wide: 1 })
  if (kind === 'wide') return [{ name: 'wide', q: dice.pick([16, 32, 64]), n: 3, fleeting: false }]
  return Array.from({ length: kind === 'many' ? dice.integer(5, 15) : 0 }, (_, index) =>
    ({ name: `crowd${index + 1}`, q: dice.pick([1, 1, 2, 4]), n: 3, fleeting: dice.chance(0.1) }))
}

/** Draws limits of a few entries between two snapshots, so that nodes that were away are updated with a snapshot. */
function drawSnapshots(dice: Dice): SwarmOptions['snapshots'] {
  return dice.chance(0.3)
    ? undefined
    : { snapshotEntries: dice.pick([1, 5, 20]), trailingEntries: dice.pick([0, 1, 5]) }
}

const suspensionChance = 0.6
/** Longer than every interval of production but that between two scrubs of all data. */
const suspensionMs = { min: 70 * 60_000, max: 150 * 60_000 }
const viewFamilies: ReadonlySet<string> = new Set(['views', 'find', 'validation'])
const usualDamage = { 'damage-record': 9, 'damage-blob': 3, 'damage-log': 4 }

function drawActions(dice: Dice, actions: readonly DrawnAction[]): Record<string, number> {
  const usual = Object.fromEntries(actions.map(({ name, weight }) => [name, weight]))
  const drawn = thinned(dice, Object.keys(usual), usual, 0.15)
  for (const family of new Set(actions.flatMap(action => action.family ?? []))) {
    if (!dice.chance(family.leftOutChance)) continue
    for (const action of actions) if (action.family === family) drawn[action.name] = 0
  }
  return drawn
}

function drawFaults(dice: Dice): Record<(typeof faultNames)[number], number> {
  const usual: Record<(typeof faultNames)[number], number> = {
    'crash': 6, 'stop': 2, 'pause': 4, 'partition': 5, 'isolate-one': 3, 'isolate-leader': 3, 'one-way': 2,
    'slow-link': 3, 'kill-connections': 3, 'drop-connections': 2,
    'slow-disk': 2, 'full-disk': 2, 'failing-disk': 2, 'failing-reads': 1, 'jump-clock': 2, 'crash-all': 1,
    'lose-disk': 5,
    'linger-connections': 3, 'cross-dial': 2, 'leave': 9,
  }
  return thinned(dice, faultNames, usual, 0.4)
}

/**
 * Sets some weights to 0 and multiplies the others by up to three. Runs with few kinds of actions find bugs that runs
 * with all of them hide (swarm testing, Groce et al. 2012).
 */
function thinned<Key extends string>(
  dice: Dice, keys: readonly Key[], usual: Readonly<Record<Key, number>>, offChance: number,
): Record<Key, number> {
  const drawn: Record<Key, number> = { ...usual }
  for (const key of keys) drawn[key] = dice.chance(offChance) ? 0 : Math.round(usual[key] * dice.between(0.5, 3))
  return drawn
}
