/** The operations of the coordinator that requests of views need. */
import type {
  Coordinator, DatabaseRecord, OperationContext, ReduceQuery, ViewAnswer, ViewGroup, ViewQuery,
} from '@sectional/cluster'
import type { IndexRow } from '@sectional/core'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

export interface ViewOperations {
  /** Returns rows, whose values are those of `encodeViewRow`. */
  scanView(db: DatabaseRecord, query: ViewQuery, context: OperationContext): Promise<ViewAnswer<IndexRow>>
  /** Returns reduced groups, whose values are those of `encodeViewGroup` with the state of `encodeReducedJson`. */
  reduceView(
    db: DatabaseRecord, query: Omit<ReduceQuery, 'reduceAgain'>, context: OperationContext,
  ): Promise<ViewAnswer<ViewGroup>>
}

/** The services that the handlers of views use. */
export interface ViewServices extends Services { readonly coordinator: Coordinator & ViewOperations }

export type ViewHandler = (request: RequestContext, services: ViewServices) => Promise<void>
