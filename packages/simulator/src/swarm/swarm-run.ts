/**
 * One run of a seed. It draws the options, lets clients work during faults, then ends every fault and requires that the
 * cluster comes to rest in one state. Checkers examine the history and the contents of the disks.
 */
import type { ControlPlaneNode } from '@sectional/server'
import type { FinalChecker, SwarmAction } from '../actions/action.ts'
import { actions } from '../actions/actions.ts'
import { createDatabase, nameOperations } from '../actions/database-actions.ts'
import { list } from '../actions/document-actions.ts'
import { findActions } from '../actions/find-actions.ts'
import { listLocals, readLocal } from '../actions/local-document-actions.ts'
import { viewActions } from '../actions/view-actions.ts'
import { attachmentsReadable } from '../checkers/attachments-readable.ts'
import { blobsKept, unnamedBlobs } from '../checkers/blobs-kept.ts'
import type { UnnamedBlobs } from '../checkers/blobs-kept.ts'
import { changesComplete } from '../checkers/changes-complete.ts'
import { changesFollow } from '../checkers/changes-follow.ts'
import { countsShown } from '../checkers/counts-shown.ts'
import { databaseUpdates } from '../checkers/database-updates.ts'
import { deletedStays } from '../checkers/deleted-stays.ts'
import { readReplicas } from '../checkers/disk-contents.ts'
import { designsKnown } from '../checkers/designs-known.ts'
import { CheckpointsTrue } from '../checkers/checkpoints-true.ts'
import { ConsensusRules } from '../checkers/consensus-rules.ts'
import { DurableAcknowledgement } from '../checkers/durable-acknowledgement.ts'
import { finalDatabase } from '../checkers/final-state.ts'
import type { FinalDatabase, FinalState, Findings } from '../checkers/final-state.ts'
import { keptDatabases } from '../checkers/kept-databases.ts'
import { IndexInspector } from '../checkers/index-inspector.ts'
import { MetadataLog } from '../checkers/metadata-log.ts'
import { findsExact } from '../checkers/finds-exact.ts'
import { oneBranch } from '../checkers/one-branch.ts'
import { optionsKept } from '../checkers/options-kept.ts'
import { RecordedOperations } from '../checkers/recorded-operations.ts'
import { replicasEqual } from '../checkers/replicas-equal.ts'
import { requestsAnswered } from '../checkers/requests-answered.ts'
import { spaceReclaimed } from '../checkers/space-reclaimed.ts'
import { tokensAtRest } from '../checkers/tokens-at-rest.ts'
import { cleanViews, unusedIndexes } from '../checkers/unused-indexes.ts'
import { updateRows } from '../checkers/update-rows.ts'
import { indexesExact, viewsExact } from '../checkers/views-exact.ts'
import { sparesOneNode } from '../drills/drill.ts'
import type { Drill } from '../drills/drill.ts'
import { drills, durationMax } from '../drills/index.ts'
import { firstSeed } from '../drills/lost-seed-drill.ts'
import { Exchanges } from '../links/exchanges.ts'
import { drillLinks } from '../links/link-drills.ts'
import { LinkWorkload } from '../links/link-workload.ts'
import { OpenLinks } from '../links/open-links.ts'
import { compactedBytesMin, ReplicaExercise } from '../drills/replica-exercise.ts'
import { checkHistory } from '../history/index.ts'
import { FaultInjector } from '../faults/fault-injector.ts'
import { FaultyDisks } from '../faults/faulty-disks.ts'
import { Supervisor } from '../faults/supervisor.ts'
import { ReplicaWatch } from '../models/replica-watch.ts'
import { ChangesReader } from '../workload/changes-reader.ts'
import { Client } from '../workload/client.ts'
import { FeedPlaces } from '../workload/feed-places.ts'
import { History } from '../workload/history.ts'
import { Dice } from '../world/dice.ts'
import { Failure } from '../world/failure.ts'
import { World } from '../world/world.ts'
import type { WorldOptions } from '../world/world.ts'
import { Schedule } from '../plan/schedule.ts'
import { damageNames, drawSwarmOptions } from '../plan/swarm-options.ts'
import type { SwarmOptions } from '../plan/swarm-options.ts'
import { Weather } from '../plan/weather.ts'
import { restBeforeDrill } from './drill-start.ts'
import { drillShares, losesWrites, lostSeedShare } from './drill-shares.ts'

export interface SwarmResult {
  readonly seed: number
  readonly options: SwarmOptions
  readonly failure: Failure | undefined
  readonly traceHash: string
  readonly events: number
  readonly operations: number
  /** Counts of operations by kind and outcome, and of faults. */
  readonly counts: Readonly<Record<string, number>>
  readonly simulatedMs: number
  readonly recent: readonly string[]
  /** The steps that were taken, which can be passed as `only`. */
  readonly steps: readonly string[]
}

export interface SwarmHooks {
  readonly onLine?: (line: string) => void
  /** Called first, with the world of the run, so that an exception of the process can be assigned to the run. */
  readonly onWorld?: (world: World) => void
  /** The bug to plant. */
  readonly plant?: WorldOptions['plant']
  /** Names of the steps to take of those that the seed draws; absent: all. */
  readonly only?: ReadonlySet<string>
}

const startMsMax = 120_000
const workMsMax = 4 * 3_600_000
const stopMsMax = 120_000
/** Milliseconds after the last fault within which all nodes must serve requests. */
const healMsMax = 120_000
/** Milliseconds within which all replicas must then be equal. */
const convergeMsMax = 400_000
/** Longer than any proposal waits, in milliseconds. */
const metadataRestMs = 10_000
const equalPollMs = 5000
/** Milliseconds after a suspension at the end, in which the nodes do what has become due. */
const resumedMs = 60_000
/** Milliseconds after which all frames that were in transit when the last node stopped have arrived. */
const lastFramesMs = 60_000
const durabilityShare = 0.2
const checkpointShare = 0.1
const recentLines = 60
const revsLimitDefault = 1000
/** With a smaller `_revs_limit`, replicas forget that a revision was replaced (docs/reliability.md). */
const drilledRevsLimitMin = 5
/** With fewer voters the cluster could not lose one. */
const votersMin = 3
/** Mean pause between two inspections of an index, as a multiple of that between two operations of a client. */
const inspectionThinks = 4
/** What clients do that only create and delete databases. */
const nameWorkload = {
  operations: nameOperations, operationsPerClient: 14,
  databases: [1, 2].map(number => ({ name: `name${number}`, q: 1, n: 3, fleeting: true })),
}
/** Minimum mean pause between two exchanges of nodes over their links. */
const exchangePauseMs = 200
/** Milliseconds between two scrubs of a node in runs with damage. */
const scrubPauseMs = 30_000
/** Milliseconds after which each node has read all its data and repaired the damage. */
const scrubbedMs = 3 * scrubPauseMs

/** The checkers of the final state: those that concern many actions, followed by those of single actions. */
const finalCheckers: Readonly<Record<string, FinalChecker>> = {
  'one-branch': oneBranch,
  'deleted-stays': deletedStays,
  'kept-databases': keptDatabases,
  'options-kept': optionsKept,
  ...Object.assign({}, ...actions.map(({ checkers }) => checkers)),
}

export async function runSwarm(seed: number, hooks: SwarmHooks = {}): Promise<SwarmResult> {
  const dice = new Dice(seed)
  const options = drawSwarmOptions(dice.fork('options'), actions)
  const watch = new ReplicaWatch()
  const world = new World({
    observe: node => watch.observe(node),
    seed, nodes: options.nodes, seeds: options.seeds, linkDelayMs: options.linkDelayMs,
    clockDrift: options.clockDrift, clockOffsetMs: options.clockOffsetMs, consensusTickMs: options.consensusTickMs,
    onLine: hooks.onLine, plant: hooks.plant,
    // Databases of the swarm have few documents, and queries by two indexes must occur.
    settings: { mango: { intersection_saved_min: '1' }, compaction: { replaced_bytes: `${compactedBytesMin}` } },
    ...(options.snapshots && { snapshots: options.snapshots }), ...(options.limits && { limits: options.limits }),
    ...(damageNames.some(name => options.faults[name] > 0) && { scrubPauseMs }),
  })
  watch.attach(world)
  hooks.onWorld?.(world)
  world.say(`seed ${seed}: ${JSON.stringify(options)}`)
  // A planted bug has the checkers that must find it, which the exercise would anticipate.
  const run = new SwarmRun(
    world, options, dice, new Schedule(hooks.only), hooks.plant === undefined ? watch : undefined,
  )
  let failure: Failure | undefined
  try {
    await run.run()
  } catch (error) {
    failure = error instanceof Failure
      ? error
      : new Failure('crash', 'exception', error instanceof Error ? error.stack ?? error.message : String(error), {
        cause: error,
      })
  }
  return {
    seed, options, failure, traceHash: world.trace.hash, events: world.trace.events,
    operations: run.history.operations.length, counts: run.counts(), simulatedMs: world.nowMs,
    recent: failure === undefined ? [] : world.trace.recent(recentLines),
    steps: run.schedule.taken,
  }
}

class SwarmRun {
  readonly history: History
  readonly schedule: Schedule
  readonly #world: World
  readonly #options: SwarmOptions
  readonly #dice: Dice
  readonly #weather: Weather
  readonly #disks: FaultyDisks
  readonly #supervisor: Supervisor
  readonly #metadata: MetadataLog
  readonly #durability: DurableAcknowledgement
  readonly #inspector: IndexInspector
  readonly #links: LinkWorkload
  readonly #exchanges: Exchanges
  /** Undefined: the run has no exercise. */
  readonly #watch: ReplicaWatch | undefined
  readonly #places = new FeedPlaces()
  #reads = 0
  #drills = 0

  constructor(world: World, options: SwarmOptions, dice: Dice, schedule: Schedule, watch: ReplicaWatch | undefined) {
    this.#watch = watch
    this.schedule = schedule
    this.#world = world
    this.#options = options
    this.#dice = dice
    this.history = new History(world)
    this.#weather = new Weather(() => world.nowMs)
    this.#disks = new FaultyDisks(world, dice.fork('disks'), options.syncDelayMs)
    this.#supervisor = new Supervisor(world, this.#disks)
    this.#metadata = new MetadataLog(world)
    // The links are watched next to the processes, beneath what other observers see of them.
    this.#exchanges = new Exchanges(world)
    new ConsensusRules(world, this.#disks)
    new CheckpointsTrue(world, this.#disks, dice.fork('checkpoints'), checkpointShare)
    this.#links = new LinkWorkload({
      world, dice: dice.fork('links'), exchanges: this.#exchanges, links: new OpenLinks(world),
    })
    this.#inspector = new IndexInspector(world, dice.fork('index inspector'))
    this.#durability = new DurableAcknowledgement(
      world, this.history, this.#disks, dice.fork('durability'), durabilityShare,
    )
  }

  async run(): Promise<void> {
    const world = this.#world
    await world.run(() => this.#begin(), startMsMax)
    await world.run(() => this.#work(), workMsMax)
    this.#judge(this.#finalState(new Map()))
    const records = await world.run(() => this.#rest(), healMsMax + convergeMsMax * this.#options.databases.length)
    const databases = await this.#equalDisks(records)
    const restMs = world.nowMs
    await world.run(() => this.#readAll(databases))
    this.#judge({ ...this.#finalState(databases), restMs })
    this.#demand('counts-shown', await world.run(() => countsShown(world, this.#dice.fork('counts'), databases)))
    await this.#checkFeeds(databases)
    await this.#checkAttachments(databases)
    if (this.#options.databaseEvents) {
      this.#demand('database-updates', await world.run(() => databaseUpdates(world, databases)))
    }
    const names = records.map(({ name }) => name)
    this.#demand('tokens-at-rest', await world.run(() => tokensAtRest(world, names)))
    await this.#checkViews(new Map([...databases].filter(([name]) => !name.startsWith('_'))))
    this.#demand(
      'changes-follow',
      await world.run(() => changesFollow(world, this.#dice.fork('follow'), names)),
    )
    if (this.#options.databaseEvents) await this.#checkUpdateRows(names)
    const haveRules = this.#options.operations['save-rule']! > 0
    this.#demand(
      'requests-answered',
      await world.run(() => requestsAnswered(world, this.#dice.fork('requests'), names, haveRules)),
    )
    await world.run(() => this.#links.atRest())
    const final = this.#finalState(databases)
    const unnamed = await this.#rested()
    // A node that has just been started sweeps its content later than the others.
    await this.#drill(databases)
    const linking = { world, dice: this.#dice.fork('link drills'), exchanges: this.#exchanges }
    this.#drills += await drillLinks(linking, this.schedule, async () => {
      // Indexes that were removed shortly before a crash are on the disk again.
      if (this.#hasIndexes) this.#demand('unused-indexes', await world.run(() => cleanViews(world, databases)))
    })
    await this.#exercise(databases)
    await world.run(() => world.stop(...world.nodes.map(node => node.number)), stopMsMax)
    await world.run(() => world.sleep(lastFramesMs))
    this.#checkLeaks()
    if (this.#hasIndexes) this.#demand('unused-indexes', await unusedIndexes(world.nodes, databases))
    if (this.#disks.lost === 0) this.#demand('space-reclaimed', await spaceReclaimed(world.nodes))
    this.#demand('blobs-kept', await blobsKept(world.nodes, unnamed, this.#disks.damagedBlobs))
    this.#check(final)
  }

  counts(): Record<string, number> {
    const counts: Record<string, number> = {}
    const count = (key: string): void => { counts[key] = (counts[key] ?? 0) + 1 }
    for (const { kind, outcome, calm } of this.history.operations) {
      count(`${kind} ${outcome}`)
      if (kind === 'read' && calm && outcome === 'done') count('read in calm weather')
    }
    if (this.#reads > 0) counts['feeds read'] = this.#reads
    if (this.#inspector.compared > 0) counts['indexes inspected'] = this.#inspector.compared
    if (this.#exchanges.count > 0) counts['exchanges'] = this.#exchanges.count
    if (this.#drills > 0) counts['drills'] = this.#drills
    for (const name of this.#weather.faults) count(`fault ${name}`)
    return counts
  }

  async #begin(): Promise<void> {
    const founders = this.#world.nodes.slice(0, this.#options.founders).map(node => node.number)
    for (const number of founders) this.#supervisor.up(this.#world.node(number))
    await this.#world.eventually(
      'the founders to start', startMsMax,
      async () => founders.every(number => this.#world.node(number).inside !== undefined) ? null : 'not yet',
    )
    await this.#world.ready(founders)
    const { session } = this.#client('setup', founders)
    if (this.#options.databaseEvents) {
      // The first request begins the recording.
      await this.#world.eventually('events of databases to be recorded', startMsMax, async () => {
        const { status } = await session.look('GET', '/_db_updates')
        return status === 200 ? null : `status ${status}`
      })
    }
    for (const database of this.#options.databases) {
      await this.#world.eventually(
        `${database.name} to be created`, startMsMax,
        async () => await createDatabase(session, database) ? null : 'refused',
      )
      const { revsLimit } = this.#options
      if (revsLimit === undefined) continue
      await this.#world.eventually(`${database.name} to keep few revisions`, startMsMax, async () => {
        const { status } = await session.look('PUT', `/${database.name}/_revs_limit`, revsLimit)
        return status === 200 ? null : 'refused'
      })
    }
  }

  /**
   * Runs the clients, the faults and the nodes that join late. Resolves when the clients have done all their actions.
   */
  async #work(): Promise<void> {
    const { clients, founders, nameClients } = this.#options
    const world = this.#world
    const injector = new FaultInjector({
      world, dice: this.#dice.fork('faults'), options: this.#options, disks: this.#disks, supervisor: this.#supervisor,
      schedule: this.schedule,
    }, this.#weather)
    void injector.run()
    const latecomers = world.nodes.slice(founders)
      .map(node => world.queue.schedule(this.#dice.wait(5000), 'latecomer', () => this.#supervisor.up(node)))
    const everybody = world.nodes.map(node => node.number)
    let over = false
    const readers = Array.from({ length: this.#options.readers }, (_, index) => this.#reader(`r${index + 1}`))
    const reading = Promise.all(readers.map(reader => reader.run(() => over)))
    const inspecting = this.#hasIndexes
      ? this.#inspector.run(this.#options.thinkMs * inspectionThinks, () => over)
      : undefined
    const linking = this.#links.run(Math.max(exchangePauseMs, this.#options.thinkMs), () => over)
    await Promise.all([
      ...Array.from({ length: clients }, (_, index) => this.#client(`c${index + 1}`, everybody)),
      ...Array.from({ length: nameClients }, (_, index) =>
        this.#client(`n${index + 1}`, everybody, { ...this.#options, ...nameWorkload })),
    ].map(client => client.run()))
    over = true
    await Promise.all([reading, inspecting, linking])
    this.#reads = readers.reduce((sum, { reads }) => sum + reads, 0)
    injector.stop()
    for (const latecomer of latecomers) latecomer.cancel()
    world.heal()
    world.say('faults are over')
  }

  #client(name: string, numbers: readonly number[], options = this.#options): Client {
    return new Client({
      name, actions, world: this.#world, dice: this.#dice.fork(`client ${name}`), history: this.history,
      weather: this.#weather, options, schedule: this.schedule,
      reachable: () => numbers,
      onAcknowledged: (operation, revision) => this.#durability.acknowledged(operation, revision),
      onSuspicious: (operation, answer) => {
        const { damagedDisks, damagedIndexes } = this.#disks
        if (damagedDisks + damagedIndexes > 0 || this.#world.nodes.some(node => this.#disks.wasHit(node))) return
        this.#world.fail(
          'crash', 'internal-error',
          `#${operation.number} was answered 500 ${JSON.stringify(answer.body)} although no disk is at fault`,
        )
      },
    })
  }

  #reader(name: string): ChangesReader {
    return new ChangesReader({
      name, world: this.#world, dice: this.#dice.fork(`reader ${name}`), options: this.#options,
      schedule: this.schedule, places: this.#places, history: this.history,
    })
  }

  /** Waits until every node runs and all replicas are equal. Returns the databases that exist. */
  async #rest(): Promise<readonly FinalDatabase['record'][]> {
    const world = this.#world
    for (const node of world.nodes) this.#supervisor.up(node)
    await world.eventually(
      'nodes to have left', healMsMax,
      async () => this.#supervisor.leaving === 0 ? null : `${this.#supervisor.leaving} are about to`,
    )
    await world.allReady(healMsMax)
    await world.eventually('one metadata state', healMsMax, async () => {
      const states = world.nodes.map(node => node.inside?.control.state())
      const texts = new Set(states.map(state => JSON.stringify([state?.nodes, [...state?.databases ?? []]])))
      return texts.size === 1 ? null : [...texts].join(' / ')
    })
    await this.#metadataRests()
    if (this.#disks.damagedDisks > 0) await world.sleep(scrubbedMs)
    const names = [...world.node(1).inside!.control.state()!.databases.keys()]
    for (const name of names) await world.converge(name, convergeMsMax)
    return names.flatMap(name => world.node(1).inside!.control.state()!.databases.get(name) ?? [])
  }

  /** Waits until promised deletions, and requests whose clients have given up, are finished. */
  async #metadataRests(): Promise<void> {
    const world = this.#world
    let before = -1
    await world.eventually('the metadata to rest', healMsMax, async () => {
      const index = world.node(1).inside!.control.state()!.index
      const rests = index === before
      before = index
      if (!rests) await world.sleep(metadataRestMs)
      return rests ? null : `index ${index}`
    })
  }

  /** Reads the disks until all replicas are equal, including local documents, which digests do not cover. */
  async #equalDisks(records: readonly FinalDatabase['record'][]): Promise<ReadonlyMap<string, FinalDatabase>> {
    const world = this.#world
    const endMs = world.nowMs + convergeMsMax
    for (;;) {
      const databases = new Map<string, FinalDatabase>()
      for (const record of records) {
        databases.set(record.name, finalDatabase(record, await readReplicas(world.nodes, record)))
      }
      const [difference] = replicasEqual(this.#finalState(databases))
      if (difference === undefined) return databases
      if (world.nowMs > endMs) throw new Failure('liveness', 'replicas-equal', difference)
      await world.run(() => world.sleep(equalPollMs))
    }
  }

  #finalState(databases: ReadonlyMap<string, FinalDatabase>): FinalState {
    return {
      databases, operations: this.history.operations, everCalm: this.#weather.everCalm, lostDisks: this.#disks.lost,
      lossMs: this.#disks.lossMs, revsLimit: this.#options.revsLimit ?? revsLimitDefault,
    }
  }

  #checkLeaks(): void {
    const world = this.#world
    const leaks = world.nodes.flatMap(node => node.leaks.map(leak => `${node.name}: ${leak}`))
    if (world.hub.openEnds.length > 0) leaks.push(`connections ${world.hub.openEnds.join(', ')}`)
    if (leaks.length > 0) throw new Failure('safety', 'nothing-leaks', leaks.join('; '))
  }

  /** Lists the documents of each database through each node, and lists and reads its local documents. */
  async #readAll(databases: ReadonlyMap<string, FinalDatabase>): Promise<void> {
    const { operations } = this.history
    for (const [name, { record }] of databases) {
      if (name.startsWith('_')) continue
      const written = operations.filter(({ kind, database }) => kind === 'local-write' && database === name)
      for (const { number } of this.#world.nodes) {
        const { session } = this.#client(`rest${number}`, [number])
        await list(session, record.name)
        await listLocals(session, name)
        for (const id of new Set(written.map(operation => operation.id))) await readLocal(session, name, id)
      }
    }
  }

  /** Judges the recorded history. */
  #judge(state: FinalState): void {
    const findings = checkHistory(new RecordedOperations(state).history())
    for (const { rule, text } of findings) this.#world.say(`${rule}: ${text}`)
    if (findings[0] !== undefined) throw new Failure('safety', findings[0].rule, findings[0].text)
  }

  async #checkFeeds(databases: ReadonlyMap<string, FinalDatabase>): Promise<void> {
    this.#demand('changes-complete', await this.#world.run(() =>
      changesComplete(
        this.#world, this.#dice.fork('changes at rest'), databases, this.#places, this.history.operations,
      )))
  }

  async #checkAttachments(databases: ReadonlyMap<string, FinalDatabase>): Promise<void> {
    this.#demand('attachments-readable', await this.#world.run(() =>
      attachmentsReadable(this.#world, this.#dice.fork('attachments at rest'), databases, this.history.operations)))
  }

  /** Whether clients define views or Mango's indexes. */
  get #hasIndexes(): boolean {
    return this.#hasAnyOf(viewActions) || this.#hasAnyOf(findActions)
  }

  #hasAnyOf(chosen: readonly SwarmAction[]): boolean {
    return chosen.some(({ name }) => this.#options.operations[name]! > 0)
  }

  async #checkViews(databases: ReadonlyMap<string, FinalDatabase>): Promise<void> {
    if (!this.#hasIndexes) return
    const world = this.#world
    const dice = this.#dice.fork('views at rest')
    // A read that meets a damaged record of an index fails, and the next one reads the index that was built again.
    const attempts = 1 + this.#disks.damagedIndexes
    await world.run(() => designsKnown(world, databases))
    this.#demand('views-exact', await world.run(() => viewsExact(world, dice, databases, attempts)))
    if (this.#hasAnyOf(findActions)) {
      const drawn = this.#dice.fork('finds at rest')
      this.#demand('finds-exact', await world.run(() => findsExact(world, drawn, databases, attempts)))
    }
    this.#demand('unused-indexes', await world.run(() => cleanViews(world, databases)))
    this.#demand('indexes-exact', await world.run(() => indexesExact(world, dice, databases, attempts)))
  }

  async #checkUpdateRows(databases: readonly string[]): Promise<void> {
    const dice = this.#dice.fork('update rows')
    const written = databases.filter(name => !name.startsWith('_'))
    if (written.length === 0) return
    this.#demand('update-rows', await this.#world.run(() => updateRows(this.#world, dice, dice.pick(written))))
  }

  /** Makes short faults one after the other in a cluster that is otherwise sound. */
  async #drill(databases: ReadonlyMap<string, FinalDatabase>): Promise<void> {
    const { drillShare, revsLimit = revsLimitDefault } = this.#options
    const spared = [...databases.values()].filter(sparesOneNode)
    const drilled = spared.filter(({ record }) => !record.name.startsWith('_'))
    if (drilled.length === 0 || revsLimit < drilledRevsLimitMin) return
    const survives = spared.length === databases.size && this.#survivesLoss()
    for (const [name, drill] of Object.entries(drills)) {
      if (!survives && losesWrites.has(name)) continue
      const dice = this.#dice.fork(`drill ${name}`)
      const share = name === 'lost-seed' && this.#options.seeds === 1
        ? lostSeedShare : drillShares[name] ?? drillShare
      if (!dice.chance(share) || !this.schedule.take(`drill ${name}`)) continue
      const number = name === 'lost-seed' ? firstSeed : dice.pick(this.#world.nodes).number
      await this.#drillWith(name, drill, dice, dice.pick(drilled).record.name, number)
    }
    // A crash may have undone the removal of indexes, because their store is not synced.
    if (this.#drills > 0 && this.#hasIndexes) {
      this.#demand('unused-indexes', await this.#world.run(() => cleanViews(this.#world, databases)))
    }
  }

  /** Calls replicas of a database of its own directly, in some runs. */
  async #exercise(databases: ReadonlyMap<string, FinalDatabase>): Promise<void> {
    const world = this.#world
    const dice = this.#dice.fork('replica exercise')
    const watch = this.#watch
    if (watch === undefined || !dice.chance(this.#options.exerciseShare)) return
    if (!this.schedule.take('replica exercise')) return
    world.say('replica exercise')
    this.#drills++
    const exercise = new ReplicaExercise({ world, dice, disks: this.#disks, watch })
    this.#demand('replica-exercise', await world.run(() => exercise.run()))
    // A crash of a node can undo that indexes were removed.
    if (this.#hasIndexes) this.#demand('unused-indexes', await world.run(() => cleanViews(world, databases)))
  }

  async #drillWith(name: string, drill: Drill, dice: Dice, database: string, number: number): Promise<void> {
    const world = this.#world
    const others = world.nodes.map(node => node.number).filter(other => other !== number)
    world.say(`drill ${name} with node ${number} and ${database}`)
    this.#drills++
    await world.run(() => restBeforeDrill(world, this.#exchanges))
    this.#demand(
      name,
      await world.run(() => drill({ world, dice, disks: this.#disks, database, number, others }), durationMax(name)),
    )
  }

  /** Returns whether the metadata log survives the loss of a disk. */
  #survivesLoss(): boolean {
    const control = this.#world.node(1).inside?.control as ControlPlaneNode | undefined
    return (control?.votingConfiguration()?.voters.length ?? 0) >= votersMin
  }

  #demand(checker: string, [finding]: Findings): void {
    if (finding !== undefined) throw new Failure('safety', checker, finding)
  }

  /** Lets the cluster run without requests for a while. Returns the blobs that must be swept in that time. */
  async #rested(): Promise<UnnamedBlobs> {
    const world = this.#world
    const { idleMs, idleSuspended } = this.#options
    if (idleMs === 0) return new Map()
    const unnamed = await unnamedBlobs(world.nodes)
    await world.run(async () => {
      const resume = idleSuspended ? world.suspend() : undefined
      await world.sleep(idleMs)
      if (resume === undefined) return
      resume()
      await world.sleep(resumedMs)
    })
    return unnamed
  }

  #check(state: FinalState): void {
    const checkers: typeof finalCheckers = {
      ...finalCheckers, 'metadata-log': ({ operations }) => this.#metadata.findings(operations),
    }
    const findings = Object.entries(checkers)
      .flatMap(([checker, check]) => check(state).map(finding => ({ checker, finding })))
    for (const { checker, finding } of findings) this.#world.say(`${checker}: ${finding}`)
    if (findings[0] !== undefined) throw new Failure('safety', findings[0].checker, findings[0].finding)
  }
}
