import type { CallContext, DocumentRevision, Leaf } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { provideBlobs } from '../attachments/blob-transfer.ts'
import { namedBlobs } from '../replicas/blob-copy.ts'
import { writeCall } from '../shard-calls/coordinator-scope.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import { fetchRevisions } from './document-read.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError } from '../replicas/replica-failures.ts'
import { branchRevisions, mergeBranches } from './revision-merge.ts'

/** What happened when the replicas of a document were brought together. */
export interface Convergence {
  /** Names of the nodes whose replicas answered. */
  readonly answered: readonly string[]
  /** Number of replicas that received revisions. */
  readonly repaired: number
  /** All revisions of the document that the replicas which answered had, also those that are no leaves. */
  readonly revisions: ReadonlySet<string>
  /** Whether each target replica answered and has all leaves now. */
  readonly complete: boolean
}

/**
 * Stores on each target replica the leaves of one document that it lacks and that another reachable replica has.
 *
 * @param targets selects the replicas to bring up to date; other replicas are then only asked if their nodes were not
 *   silent. Default: every replica that answers
 * @param read limits of the calls that read from replicas; default as for any read
 */
export async function convergeDocument(
  scope: CoordinatorScope, db: DatabaseRecord, place: ShardPlace, id: string, requestId: string,
  targets?: (peer: Peer) => boolean,
  read: CallContext = writeCall(scope.options.readTimeoutMs, { requestId }),
): Promise<Convergence> {
  const isTarget = (peer: Peer): boolean => targets === undefined || targets(peer)
  const isAsked = (peer: Peer): boolean => isTarget(peer) || !scope.readHealth.isSuspect(peer.node)
  const peers = scope.access.peers(place).filter(peer => scope.access.isReachable(peer.node) && isAsked(peer))
  const answers = (await Promise.all(peers.map(async peer => {
    try {
      const snapshot = await peer.replica.openDocument({ id, body: false, tree: true }, read)
      return [{ peer, branches: snapshot?.tree ?? [] }]
    } catch (error) {
      scope.runtime.log.debug(
        { node: peer.node, code: asReplicaError(error).code, requestId }, 'a failed replica is left out of a repair',
      )
      return []
    }
  }))).flat()
  const { leaves } = mergeBranches(answers.flatMap(answer => answer.branches))
  const known = answers.map(answer => ({
    peer: answer.peer, revisions: new Set(answer.branches.flatMap(branchRevisions)),
  }))
  const reached = new Set(known.map(({ peer }) => peer.node))
  let complete = scope.access.peers(place).every(peer => !isTarget(peer) || reached.has(peer.node))
  let repaired = 0
  for (const { peer, revisions } of known) {
    if (!isTarget(peer)) continue
    const missing = leaves.filter(leaf => !revisions.has(leaf.revision))
    if (missing.length === 0) continue
    const found = await gather(scope, known, missing, id, read)
    if (found.length < missing.length) complete = false
    if (found.length === 0) continue
    const blobs = namedBlobs(found)
    if (blobs.length > 0) await provideBlobs(scope, peer, blobs, place, requestId)
    await peer.replica.storeRevisions(
      { revisions: found, revsLimit: db.revsLimit }, writeCall(scope.options.storeTimeoutMs, { requestId }),
    )
    repaired++
  }
  const revisions = new Set(known.flatMap(each => [...each.revisions]))
  return { answered: [...reached], repaired, revisions, complete }
}

/**
 * Reads the missing leaves from the replicas that have them. Leaves whose bodies no replica has any more are left out.
 */
async function gather(
  scope: CoordinatorScope, known: readonly { readonly peer: Peer; readonly revisions: ReadonlySet<string> }[],
  missing: readonly Leaf[], id: string, call: CallContext,
): Promise<DocumentRevision[]> {
  const wanted = missing.map(leaf => leaf.revision)
  const holders = known.filter(({ revisions }) => wanted.some(revision => revisions.has(revision)))
    .map(({ peer }) => peer)
  const { opened } = await fetchRevisions(scope, holders, id, wanted, holders.length, call)
  return opened.flatMap(each => each.kind === 'found' ? [each.revision] : [])
}
