import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import {
  compileSelector, type JsonObject, matchesSelector, parseFieldPaths, parseSelector, projectFields, SelectorError,
} from '../../src/index.ts'

interface Step {
  readonly do: string
  readonly json?: JsonObject
  readonly expect: { readonly status: number; readonly body?: JsonObject }
}

const folder = new URL('../../../../test-cluster/conformance/scenarios/find/', import.meta.url)

/** Requests after which the documents of a scenario are no longer known. */
const otherWrites = /^(?:PUT|DELETE|COPY) .*{db}\/(?!_index|_security|_design)/

function docsOf(steps: readonly Step[]): readonly JsonObject[] | null {
  if (steps.some(step => otherWrites.test(step.do))) return null
  const writes = steps.filter(step => step.do === 'POST /{db}/_bulk_docs')
  const docs = writes.flatMap(({ json }) => json!['docs'] as readonly JsonObject[])
  const isPlain = writes.every(({ json }) => json!['new_edits'] === undefined)
    && docs.every(doc => typeof doc['_id'] === 'string' && !('_attachments' in doc) && !('_deleted' in doc))
  return isPlain ? docs : null
}

describe('matches of the recorded selectors', () => {
  const scenarios = readdirSync(folder).flatMap(file =>
    (JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as {
      scenarios: readonly { name: string; steps: readonly Step[] }[]
    }).scenarios)

  it('are the documents that CouchDB found', () => {
    let checked = 0
    for (const { name, steps } of scenarios) {
      const docs = docsOf(steps)
      if (docs === null) continue
      for (const { do: request, json, expect: { status, body } } of steps) {
        if (request !== 'POST /{db}/_find' || json === undefined || status !== 200) continue
        const { selector, fields = [], limit, skip, bookmark, use_index: used, partition, sort } = json
        if ([limit, skip, bookmark, used, partition, sort].some(option => option !== undefined)) continue
        const about = `${name}: ${JSON.stringify(json)}`
        const parsed = parseSelector(selector)
        const compiled = compileSelector(parsed)
        const found = docs.filter(doc => !String(doc['_id']).startsWith('_design/') && compiled(doc))
        expect(docs.filter(doc => !String(doc['_id']).startsWith('_design/') && matchesSelector(parsed, doc)), about)
          .to.deep.equal(found)
        const paths = parseFieldPaths(fields as readonly string[])
        const shown = found.map(doc => paths.length === 0 ? doc : projectFields(doc, paths))
        const recorded = (body!['docs'] as readonly JsonObject[]).map(({ _rev: _, ...members }) => members)
        if (recorded.length === 25) continue
        expect(sorted(shown.map(({ _rev: _, ...members }) => members)), about).to.deep.equal(sorted(recorded))
        checked++
      }
    }
    expect(checked).to.be.greaterThan(150)
  })

  it('are refused with the errors of CouchDB', () => {
    const codes = new Set([
      'invalid_selector', 'invalid_selector_json', 'invalid_operator', 'not_supported', 'bad_arg', 'invalid_field_name',
    ])
    let checked = 0
    for (const { name, steps } of scenarios) {
      for (const { do: request, json, expect: { body } } of steps) {
        const error = body?.['error']
        if (!/_(?:find|explain)$/.test(request) || json?.['selector'] === undefined) continue
        if (!codes.has(String(error))) continue
        const about = `${name}: ${JSON.stringify(json)}`
        const refusal = (): unknown => {
          parseFieldPaths((json['fields'] ?? []) as readonly string[])
          return parseSelector(json['selector'])
        }
        expect(refusal, about).to.throw(SelectorError).with.property('code', error)
        if (body!['reason'] !== '<ignored>') expect(refusal, about).to.throw(String(body!['reason']))
        checked++
      }
    }
    expect(checked).to.be.greaterThan(30)
  })
})

function sorted(values: readonly unknown[]): readonly string[] {
  return values.map(value => JSON.stringify(value)).sort()
}
