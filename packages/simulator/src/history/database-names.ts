import type { Finding } from './finding.ts'
import type { NameRequest } from './recorded-history.ts'

/** Requests with unknown outcomes multiply the possible states, so a name that has more of them is not judged. */
const unknownsMax = 12

/** A state that a name may be in, together with the requests that have taken effect but were not answered yet. */
interface Possible {
  readonly exists: boolean
  /** Number of creations and of deletions with unknown outcomes that have taken effect. */
  readonly created: number
  readonly deleted: number
  readonly effective: ReadonlySet<NameRequest>
}

/**
 * Creations, deletions and sightings of a name are linearizable: each takes effect at one moment between its request
 * and its answer, one with an unknown outcome at any later moment or never. No database exists before the first
 * request.
 *
 * All states that the name may be in are followed from answer to answer (Lowe, "Testing for linearizability", 2017).
 */
export function databaseNames(requests: readonly NameRequest[]): Finding[] {
  return [...Map.groupBy(requests, ({ name }) => name)].flatMap(([name, ofName]) => {
    const refuted = firstImpossible(ofName)
    if (refuted === undefined) return []
    const text = `${refuted.label} cannot be: no order of the requests for ${name} allows it`
    return [{ rule: 'database-names', text }]
  })
}

/** Returns the first request whose answer no order of the requests explains. */
function firstImpossible(requests: readonly NameRequest[]): NameRequest | undefined {
  const unknown = requests.filter(({ certain }) => !certain)
  if (unknown.length > unknownsMax) return undefined
  const certain = requests.filter(request => request.certain)
  const answers = certain.toSorted((a, b) => a.endMs - b.endMs)
  const waiting = new Set(certain)
  let states: readonly Possible[] = [{ exists: false, created: 0, deleted: 0, effective: new Set() }]
  for (const answer of answers) {
    const begun = (request: NameRequest): boolean => request.startMs <= answer.endMs
    const running = [...waiting].filter(begun)
    const creations = unknown.filter(request => begun(request) && request.does === 'create').length
    const deletions = unknown.filter(request => begun(request) && request.does === 'delete').length
    states = reachable(states, running, creations, deletions).filter(({ effective }) => effective.has(answer))
      .map(state => ({ ...state, effective: new Set([...state.effective].filter(request => request !== answer)) }))
    if (states.length === 0) return answer
    waiting.delete(answer)
  }
  return undefined
}

/** Returns all states that the running requests and those with unknown outcomes can lead to. */
function reachable(
  states: readonly Possible[], running: readonly NameRequest[], creations: number, deletions: number,
): readonly Possible[] {
  const found = new Map<string, Possible>()
  const open: Possible[] = []
  const add = (state: Possible): void => {
    // A sighting changes nothing, so it takes effect as soon as it can.
    const seen = running.filter(({ does }) => does === (state.exists ? 'see' : 'miss'))
    const noted = { ...state, effective: new Set([...state.effective, ...seen]) }
    const taken = running.map(request => noted.effective.has(request) ? 1 : 0).join('')
    const key = `${noted.exists} ${noted.created} ${noted.deleted} ${taken}`
    if (found.has(key)) return
    found.set(key, noted)
    open.push(noted)
  }
  states.forEach(add)
  for (let state = open.pop(); state !== undefined; state = open.pop()) {
    const { exists, effective } = state
    const change = exists ? 'delete' : 'create'
    for (const request of running) {
      if (request.does !== change || effective.has(request)) continue
      add({ ...state, exists: !exists, effective: new Set([...effective, request]) })
    }
    if (exists && state.deleted < deletions) add({ ...state, exists: false, deleted: state.deleted + 1 })
    if (!exists && state.created < creations) add({ ...state, exists: true, created: state.created + 1 })
  }
  return [...found.values()]
}
