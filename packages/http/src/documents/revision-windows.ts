/**
 * Opens revisions of one document in windows, because a document may have thousands of conflicts of megabytes each. The
 * next window is read when the previous one has been sent.
 */
import { ApiError, openedRevisionBytes, type OpenedRevision } from '@sectional/core'
import { checkAnswer } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

const firstWindow = 8
const windowMax = 128
/** The size of a window to which the number of its revisions is adapted. */
const windowBytes = 1024 * 1024

export interface WantedRevisions {
  readonly id: string
  readonly revisions: readonly string[] | 'leaves'
  readonly latest: boolean
  readonly r?: number
}

/**
 * Yields the wanted revisions in order. A leaf that was replaced after the leaves were read is left out.
 *
 * @throws ApiError `missing` when all leaves of an absent document are wanted; `service_unavailable` when slow clients
 * have not taken many other answers yet
 */
export async function* openInWindows(
  wanted: WantedRevisions, request: RequestContext, services: Services,
): AsyncGenerator<OpenedRevision> {
  const { id, latest, r } = wanted
  const { admission, coordinator } = services
  const isAll = wanted.revisions === 'leaves'
  const revisions = wanted.revisions === 'leaves' ? await leavesOf(wanted, request, services) : wanted.revisions
  let window = firstWindow
  let isFirst = true
  for (let begin = 0; begin < revisions.length;) {
    const asked = revisions.slice(begin, begin + window)
    const opened = await coordinator.openRevisions(request.database, id, { revisions: asked, latest, r }, request) ?? []
    const bytes = opened.reduce((sum, each) => each.kind === 'found' ? sum + bytesOf(each) : sum, 0)
    if (isFirst) checkAnswer(bytes, services)
    isFirst = false
    admission.reserveAnswer(request, bytes)
    for (const each of opened) if (each.kind === 'found' || !isAll) yield each
    admission.reserveAnswer(request, -bytes)
    begin += asked.length
    window = Math.max(1, Math.min(windowMax, window * 4, Math.floor(asked.length * windowBytes / Math.max(1, bytes))))
  }
}

async function leavesOf(
  { id, r }: WantedRevisions, request: RequestContext, { coordinator }: Services,
): Promise<readonly string[]> {
  const document = await coordinator.openDocument(request.database, id, { body: false, r }, request)
  if (document === null) throw new ApiError('missing')
  return document.leaves.map(({ revision }) => revision)
}

function bytesOf({ revision }: Extract<OpenedRevision, { kind: 'found' }>): number {
  return revision.body.length + openedRevisionBytes
}
