/**
 * The coordinator of one node, as a table of contents: operations on documents, lists, feeds and attachments have a
 * file each in `coordinator/`, those on views in `views/`, and queries by selector in `find/`.
 */
import { ApiError } from '@sectional/core'
import type { ChangeRow, IndexDefinition, ShardId, ViewTrial } from '@sectional/core'
import type { Runtime } from '@sectional/runtime'
import type { ClusterState, DatabaseRecord } from './control/cluster-state.ts'
import { BackgroundWork, NodeWindow } from './shard-calls/background-work.ts'
import { ChangeWatches } from './replicas/change-watches.ts'
import { openChanges } from './coordinator/changes-open.ts'
import { readBlob } from './coordinator/blob-read.ts'
import { BlobRepair } from './attachments/blob-repair.ts'
import { keepBlobs, shareBlobs, writeBlob } from './coordinator/blob-write.ts'
import { CoordinatorMetrics } from './shard-calls/coordinator-metrics.ts'
import { defaultCoordinatorOptions } from './contracts/coordinator-options.ts'
import type { CoordinatorOptions } from './contracts/coordinator-options.ts'
import { type CoordinatorScope, newPages } from './shard-calls/coordinator-scope.ts'
import type { Coordinator } from './contracts/coordinator.ts'
import { compactDatabase, partitionInfo, timeSpans } from './coordinator/database-upkeep.ts'
import { DesignDocumentCache } from './design-documents/design-document-cache.ts'
import { defaultDesignDocumentOptions } from './design-documents/design-document-options.ts'
import type { DesignDocumentOptions } from './design-documents/design-document-options.ts'
import { announceDesigns } from './design-documents/design-document-writes.ts'
import { readDesignDocuments } from './design-documents/design-documents-read.ts'
import type { OpenDesignDocument } from './design-documents/design-documents-read.ts'
import { databaseInfo } from './coordinator/database-info.ts'
import { RequestedCompactions } from './coordinator/requested-compactions.ts'
import { databaseState } from './coordinator/database-state.ts'
import { openDocument } from './coordinator/document-open.ts'
import { storeRevisions } from './coordinator/document-store.ts'
import { updateDocuments } from './coordinator/document-update.ts'
import { listDocuments } from './coordinator/documents-list.ts'
import { purgeDocuments, purgedInfos } from './coordinator/documents-purge.ts'
import { openDocuments } from './coordinator/documents-open.ts'
import { openLocalDocument } from './coordinator/local-document-open.ts'
import { updateLocalDocument } from './coordinator/local-document-update.ts'
import { listLocalDocuments } from './coordinator/local-documents-list.ts'
import { find } from './find/find.ts'
import { aggregateMatches } from './find/match-aggregation.ts'
import { countMatches } from './find/match-count.ts'
import { estimateRows } from './find/range-estimate.ts'
import type { FindScope } from './find/find-scope.ts'
import { SortMemory } from './find/sort-memory.ts'
import { ReadRepair } from './documents/read-repair.ts'
import { ReplicaAccess } from './replicas/replica-access.ts'
import type { ReplicaDirectory } from './replicas/replica-directory.ts'
import { ReplicaHealth } from './replicas/replica-health.ts'
import { ReplicaHistories } from './replicas/replica-histories.ts'
import { ReplicaStandings } from './replicas/replica-standings.ts'
import { UnconfirmedWrites } from './replicas/unconfirmed-writes.ts'
import { diffRevisions } from './coordinator/revisions-diff.ts'
import { openManyRevisions, openRevisions } from './coordinator/revisions-open.ts'
import type { ReduceAgain } from './contracts/view-query.ts'
import { validateEdits } from './validation/write-validation.ts'
import { cleanViews } from './views/view-cleanup.ts'
import { viewInfo } from './views/view-info.ts'
import { reduceView } from './views/view-reduce.ts'
import { scanView } from './views/view-scan.ts'
import { createViewMemory, defaultViewOptions } from './views/view-scope.ts'
import type { IndexDirectory, ViewOptions } from './views/view-scope.ts'

export interface CoordinatorParts {
  readonly runtime: Runtime
  /**
   * Each operation receives its database record. The state shows whether the record has changed while a write was
   * running.
   */
  readonly control: { readonly node: string; readonly state?: () => Pick<ClusterState, 'databases'> | null }
  readonly replicas: ReplicaDirectory
  readonly options?: Partial<CoordinatorOptions>
  /** When undefined, queries of views get `not_implemented`. */
  readonly views?: ViewParts
  readonly designDocuments?: Partial<DesignDocumentOptions>
  /**
   * Called before a write of a design document is answered, with the incarnation of the database. The answer waits for
   * the promise, which must not reject (`DesignChangeNotices.announce`).
   */
  readonly onDesignWritten?: (incarnation: string) => Promise<void>
  /** Called when a replica failed to store a write that others confirmed (`AntiEntropy.reportMissed`). */
  readonly onMissed?: (shard: ShardId, node: string) => void
  /** Starts passes between all pairs of replicas of a database (`AntiEntropy.synchronize`). */
  readonly onSynchronize?: (db: DatabaseRecord) => void
}

/** What queries of views need. */
export interface ViewParts {
  readonly indexes: IndexDirectory
  /** Returns the last step of reductions, for a definition with a reduce function. */
  readonly reduceAgain: (db: DatabaseRecord, definition: IndexDefinition) => ReduceAgain
  /** Runs the functions of a definition over documents (`Coordinator.tryView`). */
  readonly tryView: (
    db: DatabaseRecord, definition: IndexDefinition, documents: readonly ChangeRow[], signal: AbortSignal,
  ) => Promise<ViewTrial>
  readonly options?: Partial<ViewOptions>
}

export interface CoordinatorNode extends Coordinator {
  /** Call this when a design document may have changed in the database with this incarnation. */
  designChanged(incarnation: string): void
  /** Stops repairs. Resolves when no write of a finished request is running any more. */
  stop(): Promise<void>
  /** Which replicas lack writes that this node has acknowledged. */
  readonly unconfirmed: UnconfirmedWrites
  /** Number of calls that continue after their requests were answered. */
  readonly backgroundCalls: number
  /** Number of replicas that the changes feeds of this node wait on. */
  readonly watchedReplicas: number
}

interface OwnedScope {
  readonly scope: CoordinatorScope
  readonly repairs: ReadRepair
  readonly designs: DesignDocumentCache
}

/** @param stopping aborts when the coordinator stops */
function createScope(
  { runtime, control, replicas, options, designDocuments, onMissed }: CoordinatorParts, stopping: AbortSignal,
): OwnedScope {
  const bounds: CoordinatorOptions = { ...defaultCoordinatorOptions, ...options }
  const readHealth = new ReplicaHealth(runtime.clock, bounds.suspectMs)
  const decisionHealth = new ReplicaHealth(runtime.clock, bounds.suspectMs)
  const repairs = new ReadRepair(() => scope)
  const designs = new DesignDocumentCache(
    runtime, { ...defaultDesignDocumentOptions, ...designDocuments }, (db, known, bytesMax) => {
      const context = { requestId: 'design-documents', signal: stopping }
      const open: OpenDesignDocument = (...parameters) => openDocument(scope, ...parameters)
      const reading = readDesignDocuments(scope, open, db, known, bytesMax, context)
      scope.background.track(reading)
      return reading
    },
  )
  const scope: CoordinatorScope = {
    runtime,
    options: bounds,
    access: new ReplicaAccess(
      control.node, replicas, { reads: readHealth, decisions: decisionHealth }, () => control.state?.()?.databases,
    ),
    readHealth,
    decisionHealth,
    metrics: new CoordinatorMetrics(runtime.metrics),
    background: new BackgroundWork(),
    stores: new NodeWindow(bounds.nodeStoresMax, bounds.nodeStoreBytesMax),
    pages: newPages(bounds),
    repairs,
    histories: new ReplicaHistories(),
    watches: new ChangeWatches(runtime.clock, bounds),
    standings: new ReplicaStandings(runtime.clock, bounds),
    blobRepairs: new BlobRepair(() => scope),
    unconfirmed: new UnconfirmedWrites(() => runtime.clock.monotonic()),
    designs,
    compactions: new RequestedCompactions(),
    reportMissed: onMissed ?? (() => {}),
  }
  return { scope, repairs, designs }
}

/** Creates the coordinator of one node. It runs until `stop`. */
export function createCoordinator(parts: CoordinatorParts): CoordinatorNode {
  const { views, onSynchronize } = parts
  const stopping = new AbortController()
  const { scope, repairs, designs } = createScope(parts, stopping.signal)
  const tellOthers = parts.onDesignWritten ?? (async () => {})
  const viewScope: FindScope | undefined = views
    && {
      ...scope, indexes: views.indexes, viewOptions: { ...defaultViewOptions, ...views.options },
      ...createViewMemory(stopping.signal),
      openDocument: (...parameters) => openDocument(scope, ...parameters), sortMemory: new SortMemory(),
    }
  return {
    openDocument: (db, id, request, context) => openDocument(scope, db, id, request, context),
    openRevisions: (db, id, request, context) => openRevisions(scope, db, id, request, context),
    openManyRevisions: (db, requests, options, context) => openManyRevisions(scope, db, requests, options, context),
    designDocument: async (db, id) => (await designs.open(db)).get(id) ?? null,
    designDocuments: db => designs.open(db),
    validateDocuments: async (db, writes, user, context) => {
      const refusals = await validateEdits(scope, db, writes, user, context)
      return writes.map((_, index) => refusals.get(index))
    },
    updateDocuments: (db, writes, request, context) =>
      announceDesigns(designs, db, writes, updateDocuments(scope, db, writes, request, context), tellOthers),
    storeRevisions: (db, writes, request, context) =>
      announceDesigns(designs, db, writes, storeRevisions(scope, db, writes, request, context), tellOthers),
    diffRevisions: (db, requests, context) => diffRevisions(scope, db, requests, context),
    listDocuments: (db, request, context) => listDocuments(scope, db, request, context),
    openDocuments: (db, ids, request, context) => openDocuments(scope, db, ids, request, context),
    openLocalDocument: (db, id, request, context) => openLocalDocument(scope, db, id, request, context),
    updateLocalDocument: (db, write, request, context) => updateLocalDocument(scope, db, write, request, context),
    listLocalDocuments: (db, request, context) => listLocalDocuments(scope, db, request, context),
    writeBlob: (db, id, chunks, request, context) => writeBlob(scope, db, id, chunks, request, context),
    readBlob: (db, id, attachment, span, context) => readBlob(scope, db, id, attachment, span, context),
    keepBlobs: (db, id, hashes, context) => keepBlobs(scope, db, id, hashes, context),
    shareBlobs: (db, fromId, toId, hashes, context) => shareBlobs(scope, db, fromId, toId, hashes, context),
    purgeDocuments: (db, requests, request, context) =>
      announceDesigns(designs, db, requests, purgeDocuments(scope, db, requests, request, context), tellOthers),
    purgedInfos: (db, context) => purgedInfos(scope, db, context),
    partitionInfo: (db, partition, context) => partitionInfo(scope, db, partition, context),
    compactDatabase: (db, context) => compactDatabase(scope, db, context),
    timeSpans: (db, clear, context) => timeSpans(scope, db, clear, context),
    databaseInfo: (db, context) => databaseInfo(scope, db, context),
    databaseState: (db, context) => databaseState(scope, db, context),
    openChanges: (db, request, context) => openChanges(scope, db, request, context),
    scanView: async (db, query, context) => scanView(present(viewScope), db, query, context),
    reduceView: async (db, query, context) => {
      const reduceAgain = present(views).reduceAgain(db, query.definition)
      return reduceView(present(viewScope), db, { ...query, reduceAgain }, context)
    },
    find: async (db, query, context) => find(present(viewScope), db, query, context),
    countMatches: async (db, query, context) => countMatches(present(viewScope), db, query, context),
    aggregateMatches: async (db, query, context) => aggregateMatches(present(viewScope), db, query, context),
    estimateRows: async (db, candidates, read, context) =>
      estimateRows(present(viewScope), db, candidates, read, context),
    tryView: async (db, definition, rows, { signal }) => present(views).tryView(db, definition, rows, signal),
    viewInfo: async (db, definitions, context) => viewInfo(present(viewScope), db, definitions, context),
    cleanViews: async (db, used, context) => cleanViews(present(viewScope), db, used, context),
    synchronize: db => onSynchronize?.(db),
    designChanged: incarnation => designs.changed(incarnation),
    stop: () => {
      stopping.abort()
      repairs.stop()
      scope.watches.stop()
      return scope.background.idle()
    },
    unconfirmed: scope.unconfirmed,
    get backgroundCalls() { return scope.background.running },
    get watchedReplicas() { return scope.watches.size },
  }
}

function present<Part extends ViewParts | FindScope>(part: Part | undefined): Part {
  if (part === undefined) throw new ApiError('not_implemented')
  return part
}
