/** The views that the design documents of a database define at the end of a run, and the documents that they map. */
import { indexId, viewDefinitions } from '@sectional/core'
import type { IndexDefinition } from '@sectional/core'
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
  return [...documents].flatMap(([design, { leaves: [winner] }]) => {
    if (!design.startsWith('_design/') || winner === undefined || winner.deleted) return []
    const body = JSON.parse(winner.body)
    const sources: Readonly<Record<string, ViewSource>> = body.views
    return [...viewDefinitions(body, record)].map(([name, definition]): UsedView => ({
      design, name, definition, index: indexId(definition), view: viewOfSource(sources[name]!),
    }))
  })
}

/** Returns what map functions read of the documents. */
export function mappedBodies(documents: ReadonlyMap<string, DocumentContents>): readonly MappedBody[] {
  return [...documents].flatMap(([id, { leaves: [winner] }]) =>
    winner === undefined || winner.deleted || id.startsWith('_design/')
      ? []
      : [{ ...JSON.parse(winner.body), _id: id, _rev: winner.revision }])
}
