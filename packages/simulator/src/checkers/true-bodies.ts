import { allLeaves, describe } from './final-state.ts'
import type { FinalState, Findings } from './final-state.ts'

/** A revision always has the body with which it was written. */
export function trueBodies(state: FinalState): Findings {
  const { operations } = state
  const values = new Map<string, Set<string>>()
  for (const { kind, database, id, revision, value } of operations) {
    if (!['write', 'graft'].includes(kind) || revision === undefined) continue
    const key = `${database}/${id} ${revision}`
    values.set(key, (values.get(key) ?? new Set()).add(value))
  }
  const wrong = (key: string, value: string | undefined): boolean =>
    value !== undefined && values.has(key) && !values.get(key)!.has(value)
  const reads = operations.filter(({ kind, database, id, revision, readValue }) =>
    kind === 'read' && wrong(`${database}/${id} ${revision}`, readValue))
    .map(read => `${describe(read)} has the body of ${read.readValue}`)
  const stored = allLeaves(state).flatMap(({ name, id, leaf: { revision, body } }) => {
    const value = (JSON.parse(body) as { readonly v?: string }).v
    return wrong(`${name}/${id} ${revision}`, value) ? [`${name}/${id} ${revision} has the body of ${value}`] : []
  })
  return [...reads, ...stored]
}
