import type { SwarmAction } from './action.ts'
import { attachmentActions } from './attachment-actions.ts'
import { bulkActions, bulkReadActions } from './bulk-actions.ts'
import { databaseActions, lookActions } from './database-actions.ts'
import { documentActions } from './document-actions.ts'
import { findActions, findOwnActions } from './find-actions.ts'
import { localDocumentActions, manyLocalDocumentsActions } from './local-document-actions.ts'
import { optionActions } from './option-actions.ts'
import { cutOffPurgeActions, purgeActions } from './purge-actions.ts'
import { validationActions } from './validation-actions.ts'
import { viewActions } from './view-actions.ts'

/**
 * All actions of clients. A seed draws from the table in this order, so an action that is inserted before others
 * changes what every seed does.
 */
export const actions: readonly SwarmAction[] = [
  ...documentActions,
  ...bulkActions,
  ...localDocumentActions,
  ...databaseActions,
  ...attachmentActions,
  ...purgeActions,
  ...viewActions,
  ...validationActions,
  ...findActions,
  ...optionActions,
  ...cutOffPurgeActions,
  ...lookActions,
  ...manyLocalDocumentsActions,
  ...bulkReadActions,
  ...findOwnActions,
]
