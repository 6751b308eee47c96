import { noRivals } from '@sectional/core'
import type { DocumentSnapshot } from '@sectional/core'
import { everyNth, replicaBug, withChanges } from './planted-bug.ts'
import type { PlantedBug } from './planted-bug.ts'

const staleMs = 20_000

export const replicaBugs: readonly PlantedBug[] = [
  replicaBug({
    name: 'count-before-durable',
    does: 'a replica confirms decided revisions as soon as it has received them',
    caughtBy: ['durable-acknowledgement', 'acknowledged-kept', 'replicas-equal', 'checkpoints-true'],
  }, replica => ({
    storeRevisions: async (request, context) => {
      void replica.storeRevisions(request, context).catch(() => {})
      return noRivals
    },
  })),
  replicaBug({
    name: 'dropped-anti-entropy-batch',
    does: 'every other checkpointed batch is confirmed, but only its checkpoint is stored; and all digests are equal, '
      + 'because the comparison of digests repairs most of these losses',
    caughtBy: ['converge', 'replicas-equal', 'acknowledged-kept', 'changes-complete', 'checkpoints-true'],
  }, replica => {
    const drops = everyNth(2)
    return {
      upkeep: withChanges(replica.upkeep, { digestDocuments: async count => new Array<string>(count).fill('') }),
      storeRevisions: (request, context) => replica.storeRevisions(
        request.checkpoint !== undefined && request.revisions.length > 0 && drops()
          ? { ...request, revisions: [], locals: [] }
          : request,
        context),
    }
  }),
  replicaBug({
    name: 'checkpoint-ahead',
    does: 'a replica reports to have received more from another one than it has',
    caughtBy: [
      'tokens-at-rest', 'converge', 'replicas-equal', 'acknowledged-kept', 'changes-complete', 'checkpoints-true',
    ],
  }, replica => ({
    storeRevisions: (request, context) => replica.storeRevisions(
      request.checkpoint === undefined
        ? request
        : { ...request, checkpoint: { ...request.checkpoint, sequence: request.checkpoint.sequence + 5 } },
      context),
  })),
  replicaBug({
    name: 'forgotten-tombstone',
    does: 'a replica confirms tombstones from others, but does not store them',
    caughtBy: [
      'converge', 'replicas-equal', 'durable-acknowledgement', 'deleted-stays', 'acknowledged-kept', 'checkpoints-true',
    ],
  }, replica => ({
    storeRevisions: (request, context) =>
      replica.storeRevisions({ ...request, revisions: request.revisions.filter(({ deleted }) => !deleted) }, context),
  })),
  replicaBug({
    name: 'swapped-bodies',
    does: 'the bodies of two revisions in one batch are exchanged',
    caughtBy: ['known-revisions', 'same-revision', 'replicas-equal'],
  }, replica => ({
    storeRevisions: (request, context) => {
      const [first, second, ...rest] = request.revisions
      if (first === undefined || second === undefined) return replica.storeRevisions(request, context)
      return replica.storeRevisions(
        { ...request, revisions: [{ ...first, body: second.body }, { ...second, body: first.body }, ...rest] }, context,
      )
    },
  })),
  replicaBug({
    name: 'local-stamp-rule',
    does: 'the stamp of a local document is the time of the clock, even when the replaced stamp is higher',
    caughtBy: ['converge', 'replicas-equal', 'newest-locals', 'scenario'],
    scenario: 'a clock that jumps by an hour and back costs neither documents nor local documents',
  }, (replica, { wallClock }) => ({
    updateLocalDocument: async ({ id, revision, body }, context) => {
      const document = { id, revision, body, stamp: wallClock() }
      await replica.storeRevisions({ revisions: [], locals: [document], revsLimit: 1 }, context)
      return { kind: 'updated', document }
    },
  })),
  replicaBug({
    name: 'stale-cache',
    does: 'a replica answers reads from a cache that writes do not update',
    caughtBy: ['views-exact', 'fresh-reads', 'one-branch', 'sound-answers', 'update-rows'],
  }, (replica, { now }) => {
    const cached = new Map<string, { readonly atMs: number; readonly answer: DocumentSnapshot | null }>()
    return {
      openDocument: async (request, context) => {
        const key = JSON.stringify(request)
        const known = cached.get(key)
        if (known !== undefined && now() - known.atMs < staleMs) return known.answer
        const answer = await replica.openDocument(request, context)
        cached.set(key, { atMs: now(), answer })
        return answer
      },
    }
  }),
  replicaBug({
    name: 'body-of-another-revision',
    does: 'a replica answers reads with the body that the document had when it was first read',
    caughtBy: ['known-revisions', 'same-revision'],
  }, replica => {
    const bodies = new Map<string, Uint8Array>()
    return {
      openDocument: async (request, context) => {
        const answer = await replica.openDocument(request, context)
        if (answer?.body === undefined) return answer
        const body = bodies.get(request.id) ?? answer.body
        bodies.set(request.id, body)
        return { ...answer, body }
      },
    }
  }),
  replicaBug({
    name: 'winner-by-node',
    does: 'which of several leaves wins depends on the node',
    caughtBy: ['reads-agree', 'fresh-reads'],
  }, (replica, { node }) => {
    const odd = Number(/\d+/.exec(node)?.[0]) % 2 === 1
    return {
      openDocument: async (request, context) => {
        const answer = await replica.openDocument(request, context)
        const live = answer?.leaves.filter(({ deleted }) => !deleted) ?? []
        if (answer === null || !odd || live.length < 2) return answer
        const [opened] = await replica.openRevisions(
          [{ id: request.id, revisions: [live[1]!.revision], latest: false }], context,
        )
        const other = opened?.[0]
        const leaves = [live[1]!, live[0]!, ...answer.leaves.slice(2)]
        return { ...answer, leaves, ...(request.body && other?.kind === 'found' && { body: other.revision.body }) }
      },
    }
  }),
  replicaBug({
    name: 'equal-content-is-own',
    does: 'a replica confirms an edit whose revision it already has, even if another edit created that',
    caughtBy: ['scenario', 'one-success', 'contested-edits'],
    scenario: 'of two clients that claim a document while its decider is paused, one succeeds',
  }, replica => ({
    updateDocuments: async (request, context) => {
      const reply = await replica.updateDocuments(request, context)
      if (reply.kind === 'declined') return reply
      return { ...reply, outcomes: await Promise.all(reply.outcomes.map(async (outcome, index) => {
        const { id, parent, revisionHash } = request.edits[index]!
        const snapshot = outcome.kind === 'conflict'
          ? await replica.openDocument({ id, body: false, tree: true }, context)
          : null
        const own = snapshot?.tree?.find(({ path }) =>
          path.ids[0] === revisionHash && `${path.start - 1}-${path.ids[1]}` === parent)
        return own === undefined ? outcome : { kind: 'updated' as const, path: own.path }
      })) }
    },
    storeRevisions: async (request, context) => {
      await replica.storeRevisions(request, context)
      return noRivals
    },
  })),
  replicaBug({
    name: 'no-catch-up',
    does: 'a replica that was away decides edits at once, before it has received the revisions that it missed',
    caughtBy: ['scenario', 'no-stale-decisions', 'fresh-after-start', 'contested-edits'],
    scenario: 'a decider that was away decides nothing before it knows what it missed',
  }, replica => ({
    updateDocuments: (request, context) => replica.updateDocuments({ ...request, force: true }, context),
  })),
]
