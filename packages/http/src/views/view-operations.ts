/** The operations of the coordinator that requests of views need. */
import type {
  Coordinator, DatabaseRecord, OperationContext, ReduceQuery, ViewAnswer, ViewGroup, ViewInfo, ViewQuery,
} from '@sectional/cluster'
import type { IndexDefinition, IndexRow } from '@sectional/core'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

export interface ViewOperations {
  /** Returns rows, whose values are those of `encodeViewRow`. */
  scanView(db: DatabaseRecord, query: ViewQuery, context: OperationContext): Promise<ViewAnswer<IndexRow>>
  /** Returns reduced groups, whose values are those of `encodeViewGroup` with the state of `encodeReducedJson`. */
  reduceView(
    db: DatabaseRecord, query: Omit<ReduceQuery, 'reduceAgain'>, context: OperationContext,
  ): Promise<ViewAnswer<ViewGroup>>
  /** Returns information about the indexes of some definitions, and builds none. */
  viewInfo(
    db: DatabaseRecord, definitions: readonly IndexDefinition[], context: OperationContext,
  ): Promise<ViewInfo>
  /** Removes all indexes of the database except those of the given definitions. */
  cleanViews(db: DatabaseRecord, used: readonly IndexDefinition[], context: OperationContext): Promise<void>
}

/** The services that the handlers of views use. */
export interface ViewServices extends Services { readonly coordinator: Coordinator & ViewOperations }

export type ViewHandler = (request: RequestContext, services: ViewServices) => Promise<void>
