/**
 * Reviews conflicts, so that a client receives a conflict only when it is certain. The replica that decided (the
 * decider) may have reported a conflict because it lagged: it lacks the parent revision, it does not know that the
 * document was deleted, or the parent arrived (by read repair, for example) only after the decision. The decider is
 * then brought up to date and decides again, once. When the parent may be on replicas that do not answer, the outcome
 * is `unknown` and the client must try again. When the decider fails before the conflict is reviewed, as when its node
 * stops, or when it cannot be brought up to date, the edit is `undecided`: the decider has written nothing, so that
 * another replica can decide.
 */
import { mapBounded, ReplicaError } from '@sectional/core'
import type { CallContext, DocumentEdit, EditOutcome, Leaf } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { majority } from '../quorum/majority.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import { convergeDocument } from './document-convergence.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError } from '../replicas/replica-failures.ts'

/** `unknown` means that the edit may already be made, may still be made, or is not certain to conflict. */
export type DecidedOutcome = EditOutcome | { readonly kind: 'unknown' }

/** `undecided` means that the decider failed, and that it has not made the edit and never will. */
export type ReviewedOutcome = DecidedOutcome | { readonly kind: 'undecided' }

export type ReviewedReply =
  | { readonly kind: 'decided'; readonly outcomes: readonly ReviewedOutcome[] }
  | { readonly kind: 'declined' }

/** The result of examining a decider's conflict. */
type Standing =
  /** The conflict is right: the parent was replaced, or the document exists. */
  | 'certain'
  /** The decider would decide otherwise now. */
  | 'changed'
  /** The decider lacks revisions that other replicas may have. */
  | 'lagging'
  /** The examination failed, because the decider did not answer. */
  | 'unexamined'

export interface ReviewedDecision {
  readonly scope: CoordinatorScope
  readonly db: DatabaseRecord
  readonly place: ShardPlace
  readonly edits: readonly DocumentEdit[]
  readonly decider: Peer
  /** Limits of the calls that examine replicas. */
  readonly call: CallContext
  /** Asks the decider to decide again, even while it is catching up. */
  readonly decide: (edits: readonly DocumentEdit[]) => Promise<ReviewedReply>
}

/** @returns one outcome for each edit, in order */
export async function reviewConflicts(
  decision: ReviewedDecision, decided: readonly ReviewedOutcome[],
): Promise<readonly ReviewedOutcome[]> {
  const { scope, edits } = decision
  const conflicts = decided.flatMap((outcome, index) => outcome.kind === 'conflict' ? [index] : [])
  // An edit of the same call may have replaced the parent, and a replica with a short `_revs_limit` may already have
  // forgotten the parent.
  const replaced = new Set(edits.filter((_, index) => decided[index]!.kind === 'updated').map(editedRevision))
  // Each further call to a decider that is silent would take as long as its time limit.
  let isSilent = false
  const standings = await mapBounded(conflicts, scope.options.requestCallsMax, async (index): Promise<Standing> => {
    const edit = edits[index]!
    if (replaced.has(editedRevision(edit))) return 'certain'
    if (isSilent) return 'unexamined'
    try {
      return await examine(decision, edit)
    } catch (error) {
      noteSilence(scope, decision.decider, error)
      isSilent ||= asReplicaError(error).code === 'timeout'
      return 'unexamined'
    }
  })
  const outcomes: ReviewedOutcome[] = [...decided]
  const again: number[] = []
  conflicts.forEach((index, i) => {
    if (standings[i] === 'unexamined') outcomes[index] = { kind: 'undecided' }
    else if (standings[i] !== 'certain') again.push(index)
  })
  if (again.length === 0) return outcomes
  const lagging = conflicts.filter((_, i) => standings[i] === 'lagging')
  const { heard, second } = await decideAgain(
    decision, lagging.map(index => edits[index]!), again.map(index => edits[index]!),
  )
  again.forEach((index, i) => { outcomes[index] = second[i]! })
  // Unless a majority says that it lacks the parent too, the parent may be on the other side of a network partition.
  for (const index of lagging) {
    const { id, parent } = edits[index]!
    if (outcomes[index]!.kind === 'conflict' && parent !== null && !heard.has(id)) outcomes[index] = { kind: 'unknown' }
  }
  return outcomes
}

function editedRevision({ id, parent }: DocumentEdit): string {
  return `${parent ?? ''} ${id}`
}

/**
 * Brings the decider up to date and lets it decide again. When it cannot be brought up to date, the edits are left to
 * another replica.
 *
 * @param lagging those of the edits for whose documents the decider may lack revisions
 * @returns the second outcomes, and the ids of those documents about which a majority of the replicas was heard
 */
async function decideAgain(
  decision: ReviewedDecision, lagging: readonly DocumentEdit[], edits: readonly DocumentEdit[],
): Promise<{ readonly heard: ReadonlySet<string>; readonly second: readonly ReviewedOutcome[] }> {
  const { scope, db, place, decider, call } = decision
  const counted = new Set(scope.access.deciders(place).map(({ node }) => node))
  const heard = new Set<string>()
  let mayBeMade = false
  try {
    const groups = Map.groupBy(lagging, ({ id }) => id)
    await mapBounded([...groups], scope.options.repairsRunningMax, async ([id, found]) => {
      const { answered, revisions, complete } = await convergeDocument(
        scope, db, place, id, call.requestId ?? '', peer => peer.node === decider.node, call,
      )
      if (!complete && found.some(({ parent }) => parent === null || revisions.has(parent))) {
        throw new ReplicaError('unreachable', `${decider.node} did not receive all revisions of a document`)
      }
      if (answered.filter(node => counted.has(node)).length >= majority(place.activeCount)) heard.add(id)
    })
    mayBeMade = true
    const reply = await decision.decide(edits)
    scope.metrics.decision('reviewed')
    if (reply.kind === 'decided') return { heard, second: reply.outcomes }
    mayBeMade = false
  } catch (error) {
    const { code, message, nothingDone } = asReplicaError(error)
    mayBeMade &&= !nothingDone
    scope.runtime.log.debug({ requestId: call.requestId, code, error: message }, 'a conflict could not be reviewed')
  }
  return { heard, second: edits.map(() => ({ kind: mayBeMade ? 'unknown' : 'undecided' })) }
}

function examine(decision: ReviewedDecision, edit: DocumentEdit): Promise<Standing> {
  return edit.parent === null ? examineCreation(decision, edit) : examineParent(decision, edit.id, edit.parent)
}

async function examineParent({ decider, call }: ReviewedDecision, id: string, parent: string): Promise<Standing> {
  const [diff] = await decider.replica.diffRevisions([{ id, revisions: [parent] }], call)
  if (diff === undefined || diff.missing.length > 0) return 'lagging'
  // The leaves are read after the diff, so that a parent that arrives in between is seen as a leaf.
  const leaf = (await leavesOn(decider, id, call)).find(({ revision }) => revision === parent)
  return leaf !== undefined && !leaf.deleted ? 'changed' : 'certain'
}

async function examineCreation(decision: ReviewedDecision, { id, deleted }: DocumentEdit): Promise<Standing> {
  const { scope, place, decider, call } = decision
  const [winner] = await leavesOn(decider, id, call)
  if (winner === undefined || (winner.deleted && !deleted)) return 'changed'
  if (deleted) return 'certain'
  const others = scope.access.readers(place)
    .filter(({ node }) => node !== decider.node && !scope.readHealth.isSuspect(node))
  const knowDeletion = await Promise.all(Array.from({ length: majority(place.activeCount) - 1 }, async () => {
    // Each replica that fails is replaced by the next one: the deletion may be known to that one only.
    for (let peer = others.shift(); peer !== undefined; peer = others.shift()) {
      try {
        return (await leavesOn(peer, id, call))[0]?.deleted === true
      } catch (error) {
        noteSilence(scope, peer, error)
      }
    }
    return false
  }))
  return knowDeletion.includes(true) ? 'lagging' : 'certain'
}

function noteSilence({ readHealth }: CoordinatorScope, peer: Peer, error: unknown): void {
  if (asReplicaError(error).code === 'timeout') readHealth.silent(peer.node)
}

async function leavesOn(peer: Peer, id: string, call: CallContext): Promise<readonly Leaf[]> {
  return (await peer.replica.openDocument({ id, body: false, tree: false }, call))?.leaves ?? []
}
