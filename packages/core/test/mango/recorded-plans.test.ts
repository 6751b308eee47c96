import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import {
  type JsonIndex, type JsonObject, parseSelector, type PlannedQuery, planQuery, type UseIndex,
} from '../../src/index.ts'

interface Step {
  readonly do: string
  readonly json?: JsonObject
  readonly expect: { readonly status: number; readonly body?: JsonObject }
}
interface Scenario { readonly name: string; readonly steps: readonly Step[] }

const folder = new URL('../../../../test-cluster/conformance/scenarios/find/', import.meta.url)
const scenarios = readdirSync(folder).flatMap(file =>
  (JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as { scenarios: readonly Scenario[] }).scenarios)

const fullScan = 'No matching index found'

/** The indexes of one database, as the recorded requests make and delete them. */
class RecordedDatabase {
  readonly indexes: JsonIndex[] = []
  partitioned = false

  apply({ do: request, json = {}, expect: { status } }: Step): void {
    if (request === 'PUT /{db}?partitioned=true') this.partitioned = true
    if (status !== 200) return
    if (request === 'POST /{db}/_index') this.#add(json)
    const deleted = /^DELETE \/{db}\/_index\/(?:_design\/)?([^/]+)\/json\/(.+)$/.exec(request)
    if (deleted) this.#remove(`_design/${deleted[1]}`, deleted[2]!)
  }

  #add({ index, ddoc, name, partitioned }: JsonObject): void {
    const { fields, partial_filter_selector: partialFilter } = index as {
      fields: readonly (string | JsonObject)[]; partial_filter_selector?: JsonObject
    }
    const id = `_design/${String(ddoc).replace('_design/', '')}`
    this.#remove(id, String(name))
    this.indexes.push({
      ddoc: id, name: String(name), partitioned: this.partitioned && partitioned !== false,
      fields: fields.map(field => ({ name: typeof field === 'string' ? field : Object.keys(field)[0]! })),
      ...(partialFilter !== undefined && { partialFilter }),
    })
  }

  #remove(ddoc: string, name: string): void {
    const at = this.indexes.findIndex(index => index.ddoc === ddoc && index.name === name)
    if (at >= 0) this.indexes.splice(at, 1)
  }

  query(request: string, body: JsonObject): PlannedQuery {
    const sort = (body['sort'] ?? []) as readonly (string | Record<string, 'asc' | 'desc'>)[]
    const fields = (body['fields'] ?? []) as readonly string[]
    const partition = /_partition\/([^/]+)/.exec(request)?.[1] ?? (body['partition'] as string | undefined) ?? null
    return {
      selector: parseSelector(body['selector']),
      sort: sort.map(each => typeof each === 'string'
        ? { name: each, direction: 'asc' }
        : { name: Object.keys(each)[0]!, direction: Object.values(each)[0]! }),
      fields: fields.length === 0 ? null : fields,
      useIndex: useIndex(body['use_index']),
      allowFallback: body['allow_fallback'] !== false,
      conflicts: body['conflicts'] === true,
      partition, partitioned: this.partitioned,
    }
  }
}

function useIndex(value: unknown): UseIndex | null {
  const parts = typeof value === 'string' ? value.replace('_design/', '').split('/') : (value ?? []) as string[]
  if (parts.length === 0) return null
  return { ddoc: `_design/${parts[0]!.replace('_design/', '')}`, ...(parts.length > 1 && { name: parts[1]! }) }
}

function visit(check: (database: RecordedDatabase, step: Step, scenario: Scenario) => boolean): number {
  let checked = 0
  for (const scenario of scenarios) {
    const database = new RecordedDatabase()
    for (const step of scenario.steps) {
      database.apply(step)
      if (check(database, step, scenario)) checked++
    }
  }
  return checked
}

describe('plans of the recorded queries', () => {
  it('choose the index that CouchDB explains, and reject the others for its reasons', () => {
    const checked = visit((database, step, { name }) => {
      const { status, body } = step.expect
      if (!step.do.endsWith('/_explain') || status !== 200) return false
      const plan = planQuery(database.query(step.do, step.json!), database.indexes)
      if (plan.kind === 'no-plan') throw new Error(`${name}: ${plan.reason}`)
      const chosen = body!['index'] as JsonObject
      expect(plan.index?.name ?? '_all_docs', name).to.equal(chosen['name'])
      expect(plan.covering, name).to.equal(body!['covering'])
      const candidates = body!['index_candidates']
      if (Array.isArray(candidates)) {
        expect(plan.rejected.map(({ index, usable, reason, covering }) =>
          ({ name: index?.name ?? '_all_docs', usable, reasons: [{ name: reason }], covering })), name)
          .to.deep.equal(candidates.map(({ index, analysis: { usable, reasons, covering } }) =>
            ({ name: index.name, usable, reasons, covering })))
      }
      return true
    })
    expect(checked).to.equal(36)
  })

  it('fail where CouchDB finds no index, and warn where it does', () => {
    const checked = visit((database, step, { name }) => {
      const { status, body } = step.expect
      const error = body?.['error']
      const isPlanned = status === 200 || error === 'no_usable_index' || error === 'invalid_index'
      if (!step.do.endsWith('/_find') || step.json === undefined || !isPlanned) return false
      const plan = planQuery(database.query(step.do, step.json), database.indexes)
      const about = `${name}: ${JSON.stringify(step.json)}`
      if (plan.kind === 'no-plan') {
        expect({ error: plan.error, reason: plan.reason }, about).to.deep.equal(body)
      } else {
        expect(status, about).to.equal(200)
        const warning = String(body!['warning'] ?? '')
        expect(plan.index === null, about).to.equal(warning.includes(fullScan))
        expect(plan.unused !== null, about).to.equal(warning.includes('was not used'))
      }
      return true
    })
    expect(checked).to.equal(275)
  })
})
