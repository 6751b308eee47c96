/**
 * Edits of the same revisions through several nodes, while the replica that decides them is silent, or is slow to tell
 * the others. The links and nodes concerned are chosen by the shard map, so that a few edits meet the moments that
 * random faults rarely meet: a decision without an answer, two deciders, and a stand-in that has missed the parent.
 */
import { formatRange } from '@sectional/core'
import type { Findings } from '../checkers/final-state.ts'
import { edit, editInRow, editTogether, judged, remove } from './contest.ts'
import type { Contest } from './contest.ts'
import type { DrillContext } from './drill.ts'
import { pickShard } from './shard-roles.ts'

const documentsUsually = 6
/** More than a replica asks for at once when it catches up. */
const documentsOfCatchUp = 16
const coursesTaken = 3
const settleMs = 1500
/** Shorter than the time after which links to a node that does not answer are closed. */
const silentMs = { min: 1000, max: 2500 }
/** Shorter than the time after which a decider counts as silent. */
const lateMs = { min: 200, max: 750 }
/** Milliseconds between two rival edits of which the first one is broken off. */
const rivalMs = 3
const pollMs = 10
const linkMsMax = 20_000
const readWaitMs = 3000
const sharedValueChance = 0.3
/** Share of the rival edits that are rows of a bulk request. */
const rowChance = 0.4
const restartChance = 0.3
/** Slow enough that a replica misses an edit, and wants to catch up again, before it has what it asked for. */
const slowAnswersMs = 3000
const caughtUpMsMax = 30_000
const caughtUpPollMs = 100
/** The generation of the revisions that the decider misses while it catches up. */
const missedGeneration = 3
const storeCall = { timeoutMs: 10_000 }
/** About the time from a decider's conflict to the end of its examination. */
const examinedMs = 5

/** Edits get their answers according to the rules of `history/`, whichever replica decides them. */
export async function contestedEditsDrill(context: DrillContext): Promise<Findings> {
  const findings: string[] = []
  for (const course of context.dice.sample(courses, coursesTaken)) {
    if (findings.length === 0) findings.push(...await contestOf(context, course))
  }
  return findings
}

async function contestOf(context: DrillContext, course: (typeof courses)[number]): Promise<Findings> {
  const { world } = context
  const contest = await prepare(context, course === missedAgain ? documentsOfCatchUp : documentsUsually)
  if (contest === undefined) return []
  const { documents, roles: { decider } } = contest
  world.say(`contest ${course.name} of ${[...documents.keys()].join(', ')} with ${JSON.stringify(contest.roles)}`)
  const findings = await course(contest)
  world.moments.cancel()
  world.continue(decider)
  world.heal()
  if (!world.node(decider).running) await world.start(decider)
  await world.allReady()
  await world.converge(context.database)
  return [...findings, ...await judged(contest)]
}

/** Makes documents of one shard. Returns undefined when few ids are in it. */
async function prepare(context: DrillContext, count: number): Promise<Contest | undefined> {
  const { world } = context
  const { ids, roles, shard } = await pickShard(context, count)
  const made = new Map<string, string>()
  const contest = {
    context, shard, range: formatRange(shard.range), roles, edits: [], excluded: new Map<string, string>(),
    documents: made,
  }
  for (const id of ids) {
    const { status, body } = await edit(contest, roles.decider, id, null, 'first')
    if (status === 201) made.set(id, body.rev)
  }
  await world.sleep(settleMs)
  return made.size > 0 ? contest : undefined
}

/** The decider is paused for a moment. Clients edit each document through several nodes meanwhile. */
async function silentDecider(contest: Contest): Promise<Findings> {
  const { context: { dice, world }, documents, roles } = contest
  world.pause(roles.decider)
  const pauseMs = dice.between(silentMs.min, silentMs.max)
  const answers = rivalEdits(contest, [roles.standIn, roles.third, ...contest.context.others], documents, pauseMs / 3)
  await world.sleep(pauseMs)
  world.continue(roles.decider)
  await answers
  return []
}

/** The decider is slow to tell one replica, and cannot be reached by the other one, which lets the first one decide. */
async function twoDeciders(contest: Contest): Promise<Findings> {
  const { context: { dice, world }, documents, roles: { decider, standIn, third } } = contest
  const [slow, apart] = dice.chance(0.8) ? [standIn, third] : [third, standIn]
  world.slow(decider, slow, dice.between(silentMs.min, 2 * silentMs.max))
  world.cut(decider, apart)
  if (dice.chance(0.7)) world.cut(apart, decider)
  const answers = rivalEdits(contest, [decider, apart, apart, slow], documents, dice.pick([0, 20, 300]))
  await world.sleep(dice.between(silentMs.min, silentMs.max))
  world.heal()
  await answers
  return []
}

/**
 * One replica cannot reach the decider and lets another one decide. Just then the decider's own decision about another
 * edit is on its way to that replica.
 */
async function lateDecider(contest: Contest): Promise<Findings> {
  const { context: { dice, world }, documents, roles: { decider, standIn, third } } = contest
  world.slow(decider, standIn, dice.between(lateMs.min, lateMs.max))
  world.cut(decider, third)
  world.cut(third, decider)
  await Promise.all([...documents].flatMap(([id, parent]) => [
    rivalEdit(contest, third, id, parent, 'rival'),
    world.sleep(dice.between(lateMs.min, lateMs.max)).then(() => rivalEdit(contest, decider, id, parent, 'late rival')),
  ]))
  return []
}

/** The decider crashes, stops or loses its links after it has stored an edit, and before anybody is told. */
async function brokenAnswer(contest: Contest): Promise<Findings> {
  const { context: { dice, world }, documents, roles: { decider, standIn, third } } = contest
  const node = world.node(decider)
  const others = world.nodes.map(({ number }) => number).filter(number => number !== decider)
  const breaks = dice.pick([
    () => world.crash(decider),
    () => { for (const other of others) world.kill(decider, other) },
    () => { for (const other of others) world.kill(decider, other) },
  ])
  for (const [id, parent] of documents) {
    if (!node.running) break
    world.moments.onceDecided(node, breaks)
    const equal = dice.chance(sharedValueChance)
    await Promise.all([
      edit(contest, third, id, parent, equal ? 'shared' : 'broken'),
      world.sleep(dice.between(0, rivalMs)).then(() => edit(contest, standIn, id, parent, equal ? 'shared' : 'rival')),
    ])
    await connected(contest, others)
  }
  return []
}

/**
 * The decider was away while documents were edited. It starts without any link. Then a link opens, but not to the node
 * that knows what the decider has missed.
 */
async function returnAlone(contest: Contest): Promise<Findings> {
  const { context: { dice, world }, roles: { decider, standIn, third } } = contest
  const others = world.nodes.map(({ number }) => number).filter(number => number !== decider)
  if (dice.chance(0.5)) world.crash(decider)
  else await world.stop(decider)
  const replaced = await editAll(contest, third)
  world.partition([decider], others)
  await world.start(decider)
  await world.sleep(dice.between(0, settleMs))
  world.heal()
  world.cut(decider, third)
  world.cut(third, decider)
  await connected(contest, [standIn])
  await editReplacedRevisions(contest, replaced, [standIn])
  return []
}

/**
 * The documents are edited while one replica is cut off, perhaps together with nodes that have no replica. Clients then
 * edit the new revisions on its side, where nobody can tell what became of them.
 */
async function parentAway(contest: Contest): Promise<Findings> {
  const { context: { dice, world }, roles: { decider, standIn, third } } = contest
  const [alone, through, holder] = dice.sample([decider, standIn, third], 3) as [number, number, number]
  const spare = world.nodes.map(({ number }) => number).filter(number => ![alone, through, holder].includes(number))
  const side = [alone, ...spare.filter(() => dice.chance(0.5))]
  const others = world.nodes.map(({ number }) => number).filter(number => !side.includes(number))
  if (dice.chance(restartChance)) await world.stop(alone)
  world.partition(side, others)
  for (const here of side) for (const there of others) world.kill(here, there)
  const edited = await editAll(contest, through)
  if (!world.node(alone).running) {
    await world.start(alone)
    await world.ready([alone])
  }
  await Promise.all([...edited].map(([id, revision]) => edit(contest, dice.pick(side), id, revision, 'unseen')))
  return []
}

/**
 * The decider catches up over a slow link. It misses further edits just after it has been told what it lacks. It
 * decides again only when it has those, too.
 */
async function missedAgain(contest: Contest): Promise<Findings> {
  const { context: { dice, disks, world }, roles: { decider, ...roles } } = contest
  const [source, apart] = dice.sample([roles.standIn, roles.third], 2) as [number, number]
  const others = world.nodes.map(({ number }) => number).filter(number => number !== decider)
  world.partition([decider], others)
  for (const other of others) world.kill(decider, other)
  const edited = await editAll(contest, source)
  const missed = Promise.withResolvers<ReadonlyMap<string, string>>()
  world.moments.onceScanned(world.node(source), () => {
    world.slow(decider, source, slowAnswersMs)
    void editTogether(contest, source, edited).then(missed.resolve)
  })
  const trouble = disks.of(world.node(decider))
  world.moments.onceStoring(
    world.node(decider), missedGeneration, () => { trouble.full = true }, () => { trouble.full = false },
  )
  world.heal()
  world.cut(apart, decider)
  world.cut(decider, apart)
  const none = world.sleep(caughtUpMsMax).then((): ReadonlyMap<string, string> => new Map())
  const replaced = await Promise.race([missed.promise, none])
  const endMs = world.nowMs + caughtUpMsMax
  while (await isCatchingUp(contest)) {
    // A replica that still declines lets others decide, of which only one answers, and that one late.
    if (world.nowMs >= endMs) return []
    await world.sleep(caughtUpPollMs)
  }
  await editReplacedRevisions({ ...contest, documents: edited }, replaced, [decider])
  return []
}

/** Returns whether the decider has not caught up with the other replicas of the shard. */
async function isCatchingUp({ context: { database, world }, range, roles: { decider } }: Contest): Promise<boolean> {
  const { body, status } = await world.send(decider, 'GET', `/_node/_local/_replicas/${database}`)
  const replicas: readonly { readonly range: string; readonly catching_up: boolean }[] =
    status === 200 ? body.replicas : []
  return replicas.find(replica => replica.range === range)?.catching_up ?? true
}

/**
 * The decider lacks revisions that the other replicas have, and fails while a conflict is examined that it has reported
 * for that reason. Nobody else edits these revisions.
 */
async function brokenReview(contest: Contest): Promise<Findings> {
  const { context: { dice, world }, documents, roles: { decider, standIn, third }, shard } = contest
  const node = world.node(decider)
  const others = world.nodes.map(({ number }) => number).filter(number => number !== decider)
  const breaks = dice.pick([
    () => world.crash(decider),
    () => world.pause(decider),
    () => { for (const other of others) world.kill(decider, other) },
  ])
  const findings: string[] = []
  // What has broken is put right after the course, so nothing may break later.
  let isOver = false
  const breakNow = (): void => { if (!isOver) breaks() }
  for (const [id, first] of documents) {
    const replicas = [standIn, third].map(number => world.moments.replicaOf(world.node(number), shard))
    if (!node.running || node.paused || replicas.includes(undefined)) break
    const path = { start: 2, ids: [dice.hash(), first.slice(2)] }
    const body = new Uint8Array(Buffer.from('{"v":"copied"}'))
    for (const replica of replicas) {
      await replica!.storeRevisions({ revisions: [{ id, path, deleted: false, body }], revsLimit: 1000 }, storeCall)
    }
    const parent = `2-${path.ids[0]}`
    contest.edits.push({
      label: `a copy on node ${standIn} and ${third}`, document: id, startMs: world.nowMs, endMs: world.nowMs,
      outcome: 'done', parent: first, content: 'copied', deleted: false, revision: parent, grafted: true,
      ancestors: [first], exclusive: false, kept: true, copies: 0,
    })
    const fail = (): void => { world.queue.schedule(dice.between(0, examinedMs), 'the decider fails', breakNow) }
    world.moments.onceDecided(node, fail, 'conflict')
    const { status } = await edit(contest, third, id, parent, 'after the copy')
    if (status === 409) findings.push(`an edit of ${id} ${parent}, which nobody else has edited, was answered 409`)
    world.moments.cancel()
  }
  isOver = true
  return findings
}

/**
 * The decider is cut off while a document is edited twice. When another replica reaches it again, and it has not heard
 * of these edits, a client sends an edit that equals the first of them.
 */
async function equalEditLater(contest: Contest): Promise<Findings> {
  const { context: { world }, documents, roles: { decider, standIn, third } } = contest
  world.partition([decider], world.nodes.map(({ number }) => number).filter(number => number !== decider))
  const replaced: [string, string][] = []
  for (const [id, parent] of documents) {
    const { status, body } = await edit(contest, standIn, id, parent, 'shared')
    if (status === 201 && (await edit(contest, standIn, id, body.rev, 'second')).status === 201) {
      replaced.push([id, parent])
    }
  }
  world.heal()
  world.cut(standIn, decider)
  world.cut(decider, standIn)
  await Promise.all(replaced.map(([id, parent]) => edit(contest, third, id, parent, 'shared')))
  return []
}

/**
 * The same, but the third replica receives the first edit after the second one, which is made through a node without a
 * replica.
 */
async function equalEditFirst(contest: Contest): Promise<Findings> {
  const { context: { world }, documents, roles: { decider, standIn, third } } = contest
  const outside = world.nodes.find(({ number }) => ![decider, standIn, third].includes(number))?.number
  if (outside === undefined) return []
  world.partition([decider], world.nodes.map(({ number }) => number).filter(number => number !== decider))
  const [others, ofOrder] = [[...documents].slice(0, 2), [...documents].slice(2)]
  // Both nodes wait for the decider once, and not again.
  await Promise.all(others.map(([id, parent], index) => edit(contest, [standIn, outside][index]!, id, parent, 'other')))
  const replaced: [string, string][] = []
  for (const [id, parent] of ofOrder) {
    world.moments.onceDecided(world.node(standIn), () => world.slow(standIn, third, lateMs.min))
    const first = edit(contest, standIn, id, parent, 'shared')
    const made = await firstMade(contest, standIn, id, parent)
    if (made !== undefined) await edit(contest, outside, id, made, 'second')
    if ((await first).status === 201) replaced.push([id, parent])
    world.slow(standIn, third, 0)
  }
  world.heal()
  for (const informed of [standIn, outside]) {
    world.cut(informed, decider)
    world.cut(decider, informed)
  }
  await Promise.all(replaced.map(([id, parent]) => edit(contest, third, id, parent, 'shared')))
  return []
}

/** Waits until a replica shows a successor of the revision. Returns it; undefined when it shows none in time. */
async function firstMade(
  { context: { database, world } }: Contest, through: number, id: string, parent: string,
): Promise<string | undefined> {
  for (const endMs = world.nowMs + silentMs.max; world.nowMs < endMs; await world.sleep(pollMs)) {
    const { body, status } = await world.send(through, 'GET', `/${database}/${id}?r=1`)
    if (status === 200 && body._rev !== parent) return body._rev as string
  }
  return undefined
}

/**
 * A client restores deleted documents, and its node hears late what the decider has done. Another client reads them
 * through the decider and deletes them again. No other replica restores them then.
 */
async function restoredLate(contest: Contest): Promise<Findings> {
  const { context: { database, world }, documents, roles: { decider, third } } = contest
  for (const [id, first] of documents) {
    if ((await remove(contest, decider, id, first)).status !== 200) continue
    const deletedAgain = Promise.withResolvers<void>()
    world.moments.onceDecided(world.node(decider), () => {
      world.slow(decider, third, slowAnswersMs)
      void (async () => {
        const { body, status } = await world.read(decider, database, id)
        if (status !== 200 || (await remove(contest, decider, id, body._rev)).status !== 200) return
        contest.excluded.set(`restored ${id}`, `${body._rev}, which it had made, was deleted`)
      })().then(deletedAgain.resolve)
    })
    await edit(contest, third, id, null, `restored ${id}`)
    world.moments.cancel()
    await Promise.race([deletedAgain.promise, world.sleep(silentMs.max)])
    world.heal()
  }
  return []
}

/**
 * Documents are edited twice while the decider is away, and the others forget the attempts when they start again. The
 * decider starts alone, and the links open while it writes an edit that equals the first of these.
 */
async function decidesAlone(contest: Contest): Promise<Findings> {
  const { context: { dice, disks, world }, documents, roles: { decider, standIn } } = contest
  const others = world.nodes.map(({ number }) => number).filter(number => number !== decider)
  await world.stop(decider)
  const replaced: [string, string][] = []
  for (const [id, parent] of documents) {
    const { status, body } = await edit(contest, standIn, id, parent, 'shared')
    if (status === 201 && (await edit(contest, standIn, id, body.rev, 'second')).status === 201) {
      replaced.push([id, parent])
    }
  }
  await world.stop(...others)
  await world.start(...others)
  await world.ready(others)
  world.partition([decider], others)
  await world.start(decider)
  await world.ready([decider])
  const trouble = disks.of(world.node(decider))
  trouble.slowMs = slowAnswersMs
  const answers = Promise.all(replaced.map(([id, parent]) => edit(contest, decider, id, parent, 'shared')))
  await world.sleep(dice.between(0, settleMs))
  world.heal()
  await answers
  trouble.slowMs = 0
  return []
}

const courses = [
  silentDecider, twoDeciders, lateDecider, staleStandIn, missedNotice, brokenAnswer, returnAlone, parentAway,
  missedAgain, brokenReview, equalEditLater, equalEditFirst, restoredLate, decidesAlone,
] as const

/** Waits until the decider, if it runs, is linked to the nodes. */
async function connected({ context: { world }, roles }: Contest, numbers: readonly number[]): Promise<void> {
  const node = world.node(roles.decider)
  const deadline = world.nowMs + linkMsMax
  const isLinked = (number: number): boolean => {
    const { inside } = world.node(number)
    return inside === undefined || inside.control.connectedNodes().includes(node.name)
  }
  while (node.running && world.nowMs < deadline && !numbers.every(isLinked)) await world.sleep(pollMs)
}

/** Two edits at least of each document at nearly the same time, some of them with equal contents. */
async function rivalEdits(
  contest: Contest, through: readonly number[], ofDocuments: ReadonlyMap<string, string>, withinMs: number,
): Promise<void> {
  const { dice, world } = contest.context
  await Promise.all([...ofDocuments].flatMap(([id, parent]) => {
    const shared = dice.chance(sharedValueChance)
    return dice.sample(through, dice.integer(2, 3)).map(async (number, index) => {
      await world.sleep(dice.between(0, withinMs))
      await rivalEdit(contest, number, id, parent, shared ? 'shared' : `rival ${index}`)
    })
  }))
}

function rivalEdit(contest: Contest, through: number, id: string, parent: string, value: string): Promise<unknown> {
  const inRow = contest.context.dice.chance(rowChance)
  return inRow ? editInRow(contest, through, id, parent, value) : edit(contest, through, id, parent, value)
}

/**
 * The second replica cannot be reached by the first one while documents are edited. Then the first one is silent, and
 * the second one decides: it must have been told the edits before.
 */
async function staleStandIn(contest: Contest): Promise<Findings> {
  const { context: { world }, roles: { decider, standIn, third } } = contest
  world.cut(decider, standIn)
  world.cut(standIn, decider)
  const replaced = await editAll(contest, decider)
  world.pause(decider)
  const findings = await readBranches(contest, third, replaced)
  await editReplacedRevisions(contest, replaced, [third, standIn])
  return findings
}

/** The link between one replica and the node that clients use breaks, so that the replica misses edits. */
async function missedNotice(contest: Contest): Promise<Findings> {
  const { context: { dice, world }, roles: { decider, standIn, third } } = contest
  world.cut(decider, third)
  world.cut(third, decider)
  world.kill(decider, third)
  const replaced = await editAll(contest, third)
  world.heal()
  await connected(contest, [third])
  await world.sleep(dice.between(200, 600))
  await editReplacedRevisions(contest, replaced, [standIn])
  return []
}

/** Edits the documents one after the other. Returns those whose edit a majority has confirmed. */
async function editAll(contest: Contest, through: number): Promise<ReadonlyMap<string, string>> {
  const edited = new Map<string, string>()
  for (const [id, parent] of contest.documents) {
    const { status, body } = await edit(contest, through, id, parent, 'second')
    if (status === 201) edited.set(id, body.rev)
  }
  return edited
}

/** Edits first revisions that were replaced. These edits must not take effect. */
async function editReplacedRevisions(
  contest: Contest, replaced: ReadonlyMap<string, string>, through: readonly number[],
): Promise<void> {
  const { dice } = contest.context
  await Promise.all([...replaced].map(async ([id, successor]) => {
    const value = `late ${id}`
    contest.excluded.set(value, `${successor} had replaced the revision that it edits`)
    await edit(contest, dice.pick(through), id, contest.documents.get(id)!, value)
  }))
}

/** No replica shows a revision as a conflict that another replica has replaced. */
async function readBranches(
  { context: { database, world } }: Contest, through: number, replaced: ReadonlyMap<string, string>,
): Promise<Findings> {
  const answers = await Promise.all([...replaced.keys()].map(id => world.send(
    through, 'GET', `/${database}/${id}?conflicts=true&revs=true`, undefined, { timeoutMs: readWaitMs },
  )))
  return answers.flatMap(({ body, status }) => {
    if (status !== 200 || body._conflicts === undefined) return []
    return [`node ${through} shows ${body._id} ${body._rev} with the conflicts ${body._conflicts.join(', ')}, although `
      + 'nobody has made one']
  })
}
