/** `_aggregate` (docs/reference/find.md#post-db_aggregate). */
import { answerAggregate } from '../find/aggregate-answer.ts'
import { parseAggregateRequest } from '../find/aggregate-request.ts'
import { planFind } from '../find/find-plan.ts'
import { asClientError } from '../find/selector-option.ts'
import { pathPartition } from '../lists/path-partition.ts'
import { readQueryObject, requireJsonType } from '../messages/body.ts'
import type { Handler } from '../pipeline/resource.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

export const postAggregate: Handler = (request, services) => aggregate(undefined, request, services)
export const postAggregateInPartition: Handler = async (request, services) =>
  aggregate(pathPartition(request), request, services)

async function aggregate(partition: string | undefined, request: RequestContext, services: Services): Promise<void> {
  requireJsonType(request)
  const body = await readQueryObject(request, services)
  const { partitioned } = request.database
  const { findLimit: limit, selectorConditionsMax: conditionsMax } = services.options
  const asked = parseAggregateRequest(body, { limit, conditionsMax, partition, partitioned })
  const plan = await planFind(asked.find, request, services, true)
  try {
    await answerAggregate(asked, plan, request, services)
  } catch (error) {
    throw asClientError(error)
  }
}
