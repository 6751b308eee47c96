/** `_find` and `_explain` (docs/reference/find.md#post-db_find). */
import { answerCount } from '../find/count-answer.ts'
import { explanation } from '../find/explain-answer.ts'
import { answerFind } from '../find/find-answer.ts'
import { planFind, type FindPlan } from '../find/find-plan.ts'
import { parseFindRequest, type FindRequest } from '../find/find-request.ts'
import { asClientError } from '../find/selector-option.ts'
import { findOnly, planWithoutIndexes } from '../find/single-document.ts'
import { pathPartition } from '../lists/path-partition.ts'
import { readQueryObject, requireJsonType } from '../messages/body.ts'
import { sendJson } from '../messages/response.ts'
import type { Handler } from '../pipeline/resource.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { ownDocumentOnly } from '../users/user-document-access.ts'

export const postFind: Handler = (request, services) => find(undefined, request, services)
export const postFindInPartition: Handler = async (request, services) =>
  find(pathPartition(request), request, services)
export const postExplain: Handler = (request, services) => explain(undefined, request, services)
export const postExplainInPartition: Handler = async (request, services) =>
  explain(pathPartition(request), request, services)

interface Planned { readonly find: FindRequest; readonly plan: FindPlan }

async function find(partition: string | undefined, request: RequestContext, services: Services): Promise<void> {
  const { find: asked, plan } = await plannedQuery(partition, request, services)
  const answer = asked.count ? answerCount : answerFind
  try {
    await answer(asked, plan, request, services)
  } catch (error) {
    throw asClientError(error)
  }
}

async function explain(partition: string | undefined, request: RequestContext, services: Services): Promise<void> {
  const planned = await plannedQuery(partition, request, services)
  sendJson(request, services, 200, explanation(planned.find, planned.plan, request))
}

/** @throws ApiError for a body that is not valid, and for a query that cannot be served */
async function plannedQuery(
  partition: string | undefined, request: RequestContext, services: Services,
): Promise<Planned> {
  requireJsonType(request)
  const body = await readQueryObject(request, services)
  const { partitioned } = request.database
  const { findLimit: limit, selectorConditionsMax: conditionsMax } = services.options
  const parsed = parseFindRequest(body, { limit, conditionsMax, partition, partitioned })
  const only = ownDocumentOnly(request)
  if (only !== null) {
    const own = findOnly(only, parsed)
    return { find: own, plan: planWithoutIndexes(own, request) }
  }
  return { find: parsed, plan: await planFind(parsed, request, services) }
}
