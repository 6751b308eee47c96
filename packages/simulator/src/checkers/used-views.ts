/** The views and indexes that the design documents of a database define at the end of a run, and their documents. */
import { indexId, viewDefinitions } from '@sectional/core'
import type { IndexDefinition } from '@sectional/core'
import { indexDefinitionOf, indexOfSource } from '../views/swarm-indexes.ts'
import type { IndexSource } from '../views/swarm-indexes.ts'
import { viewOfSource } from '../views/view-functions.ts'
import type { MappedBody, SwarmView, ViewSource } from '../views/view-functions.ts'
import type { DocumentContents } from './disk-contents.ts'
import type { FinalDatabase } from './final-state.ts'

export interface UsedView {
  /** Id of the design document, such as `_design/first`. */
  readonly design: string
  readonly name: string
  readonly view: SwarmView
  readonly definition: IndexDefinition
  /** The id of its index. */
  readonly index: string
}

export function usedViews({ documents, record }: FinalDatabase): readonly UsedView[] {
  return designDocuments(documents).flatMap(([design, body]) => {
    const sources: Readonly<Record<string, ViewSource>> = body.views
    return [...viewDefinitions(body, record)].map(([name, definition]): UsedView => ({
      design, name, definition, index: indexId(definition), view: viewOfSource(sources[name]!),
    }))
  })
}

/** Returns Mango's indexes, with the views that have the same rows. */
export function usedQueryIndexes({ documents }: FinalDatabase): readonly UsedView[] {
  return designDocuments(documents).flatMap(([design, body]) => {
    if (body.language !== 'query') return []
    return Object.entries<IndexSource>(body.views).map(([name, source]): UsedView => {
      const index = indexOfSource(source)
      const definition = indexDefinitionOf(index)
      return { design, name, definition, index: indexId(definition), view: index.view }
    })
  })
}

/** Returns the ids and bodies of the design documents that are not deleted. */
function designDocuments(documents: ReadonlyMap<string, DocumentContents>): readonly (readonly [string, any])[] {
  return [...documents].flatMap(([id, { leaves: [winner] }]) => {
    const isUsed = id.startsWith('_design/') && winner?.deleted === false
    return isUsed ? [[id, JSON.parse(winner.body)] as const] : []
  })
}

/** Returns what map functions read of the documents. */
export function mappedBodies(documents: ReadonlyMap<string, DocumentContents>): readonly MappedBody[] {
  return [...documents].flatMap(([id, { leaves: [winner] }]) =>
    winner === undefined || winner.deleted || id.startsWith('_design/')
      ? []
      : [{ ...JSON.parse(winner.body), _id: id, _rev: winner.revision }])
}
