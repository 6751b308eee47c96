/** `POST _design/{name}/_view/{view}?dry_run=true` (docs/reference/views.md#dry-runs). */
import {
  ApiError, viewDefinition, viewTrialLimits, type IndexDefinition, type JsonObject,
  type ReducedJson, type TrialFailure, type ViewTrial,
} from '@sectional/core'
import { checkDesignDocument } from '../documents/design-document.ts'
import { DesignCompiler } from '../documents/design-functions.ts'
import { sendJsonText } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { openDefinition } from './view-definitions.ts'
import { sampleDocuments, type ViewSample } from './view-sample.ts'

/** Number of documents of a sample when the request does not say it. */
const sampleDefault = 100
/** Number of rows that are listed at most. */
const listedRowsMax = 1000
/** Bytes that a trial may keep: the documents, and the keys and values of the rows as texts and encoded. */
const trialBytes = 4 * viewTrialLimits.bytes
const definitionMembers = ['reduce', 'options', 'lib']

/**
 * Runs a saved view, or one that the body defines, over some documents. It stores nothing.
 *
 * @throws ApiError for a body that is not valid, a view that does not exist, and a function that does not compile
 */
export async function tryView(
  designName: string, viewName: string, body: JsonObject, request: RequestContext, services: Services,
): Promise<void> {
  const sample = sampleOf(body)
  const definition = body['map'] === undefined
    ? await savedDefinition(designName, viewName, body, request, services)
    : givenDefinition(viewName, body, request)
  services.admission.reserveParsed(request, trialBytes)
  await new DesignCompiler(request, services).checkView(`_design/${designName}`, viewName, definition)
  const documents = await sampleDocuments(definition, sample, request, services)
  const trial = await services.coordinator.tryView(request.database, definition, documents, request)
  sendJsonText(request, services, 200, trialText(trial))
}

async function savedDefinition(
  designName: string, viewName: string, body: JsonObject, request: RequestContext, services: Services,
): Promise<IndexDefinition> {
  const given = definitionMembers.find(name => body[name] !== undefined)
  if (given !== undefined) throw new ApiError('bad_request', `\`${given}\` needs \`map\``)
  const definition = await openDefinition(designName, viewName, request, services)
  if (definition.kind !== 'javascript') throw new ApiError('bad_request', '`dry_run` needs a view in JavaScript')
  return definition
}

function givenDefinition(viewName: string, body: JsonObject, request: RequestContext): IndexDefinition {
  const { map, reduce, options, lib } = body
  const design = {
    ...options !== undefined && { options },
    views: { ...lib !== undefined && { lib }, [viewName]: { map, ...reduce !== undefined && { reduce } } },
  }
  checkDesignDocument(Buffer.from(JSON.stringify(design)), request.database)
  return viewDefinition(design, viewName, request.database)
}

function sampleOf({ sample = sampleDefault, ids }: JsonObject): ViewSample {
  const { documents } = viewTrialLimits
  if (ids !== undefined) {
    if (!Array.isArray(ids) || ids.length > documents || !ids.every(id => typeof id === 'string')) {
      throw new ApiError('bad_request', `\`ids\` must be an array of at most ${documents} document ids`)
    }
    return { ids }
  }
  if (!Number.isInteger(sample) || (sample as number) < 1 || (sample as number) > documents) {
    throw new ApiError('bad_request', `\`sample\` must be an integer from 1 to ${documents}`)
  }
  return { newest: sample as number }
}

function trialText(trial: ViewTrial): string {
  const { mapped, rows, reduced, failedCount, failures, logged, stoppedBy, mapMs, reduceMs } = trial
  const listed = rows.slice(0, listedRowsMax)
    .map(({ id, key, value }) => `{"id":${JSON.stringify(id)},"key":${key},"value":${value}}`)
  return [
    `{"documents":${mapped},"total_rows":${rows.length},"rows":[`,
    listed.map(row => `\r\n${row}`).join(), '\r\n]',
    ...reduced === undefined ? []
      : [`,"reduced":{"value":${reducedText(reduced.direct)},"rereduced":${reducedText(reduced.rereduced)}}`],
    `,"failed":${failedCount},"errors":${JSON.stringify(failures.map(errorMembers))},"log":${JSON.stringify(logged)}`,
    ...stoppedBy === null ? [] : [`,"stopped_by":"${stoppedBy}"`],
    `,"timing":{"map_ms":${rounded(mapMs)},"reduce_ms":${rounded(reduceMs)}}}`,
  ].join('')
}

function reducedText(reduced: ReducedJson): string {
  return reduced.failure === undefined ? reduced.json : JSON.stringify(reduced.failure)
}

function errorMembers({ id, error, line, column, module }: TrialFailure): object {
  return { id, error, ...line !== null && { line, column }, ...module !== null && { module } }
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000
}
