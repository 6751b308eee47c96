/** Resources of the server: the welcome message, the icon, `_up`, `_uuids` and `_membership`. */
import { ApiError, formatHttpTime } from '@sectional/core'
import { matchesTag, plainHeaders, send, sendJson, sendNotModified } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/** The CouchDB version whose API is implemented; clients check it. */
const apiVersion = '3.5.1'
const features = ['access-ready', 'partitioned', 'pluggable-storage-engines', 'reshard', 'scheduler']

export function getGreeting(request: RequestContext, services: Services): void {
  sendJson(request, services, 200, {
    couchdb: 'Welcome',
    version: apiVersion,
    git_sha: '0000000',
    uuid: services.control.state()?.clusterId ?? '',
    features,
    vendor: { name: 'Sectional', version: services.nodeInformation.version },
  })
}

/** A 16x16 one-bit icon: three stacked bars. */
const icon = Buffer.from([
  'AAABAAEAEBACAAEAAQCwAAAAFgAAACgAAAAQAAAAIAAAAAEAAQAAAAAAgAAAAAAAAAAAAAAAAgAAAAAAAAD///8A',
  'lEsmAAAAAAB//gAAf/4AAH/+AAB//gAAAAAAAH/+AAB//gAAf/4AAH/+AAAAAAAAf/4AAH/+AAB//gAAf/4AAAAA',
  'AAD//wAAgAEAAIABAACAAQAAgAEAAP//AACAAQAAgAEAAIABAACAAQAA//8AAIABAACAAQAAgAEAAIABAAD//wAA',
].join(''), 'base64')

const iconSeconds = 31_536_000

export function getIcon(request: RequestContext, services: Services): void {
  send(request, services, 200, {
    ...plainHeaders(request, services), 'Content-Type': 'image/x-icon',
    'Cache-Control': `public, max-age=${iconSeconds}`,
    'Expires': formatHttpTime(services.runtime.clock.now() + iconSeconds * 1000),
  }, icon)
}

/** The health check of load balancers. It answers 200 only when the node can serve requests for data. */
export function getUp(request: RequestContext, services: Services): void {
  const { options, control, nodeInformation } = services
  const mode = options.maintenanceMode
  if (mode === 'true') return sendJson(request, services, 404, { status: 'maintenance_mode' })
  if (mode === 'nolb') return sendJson(request, services, 404, { status: 'nolb' })
  const reason = control.notReadyReason()
  const seeds = nodeInformation.seeds()
  if (reason !== null) return sendJson(request, services, 404, { status: 'seeding', reason, seeds })
  sendJson(request, services, 200, { status: 'ok', seeds })
}

export function getUuids(request: RequestContext, services: Services): void {
  const text = request.query.get('count')
  const count = text === undefined ? 1 : /^\d+$/.test(text) ? Number(text) : -1
  if (count < 0) throw new ApiError('bad_request', 'count must be a positive integer')
  if (count > services.options.uuidsMax) throw new ApiError('bad_request', 'count parameter too large')
  const uuids = Array.from({ length: count }, () => services.uuids.next())
  const etag = `"${services.uuids.random()}"`
  if (matchesTag(request, etag)) return sendNotModified(request, services, etag)
  sendJson(request, services, 200, { uuids }, {
    'Cache-Control': 'no-cache', 'Pragma': 'no-cache', 'Expires': 'Mon, 01 Jan 1990 00:00:00 GMT', 'ETag': etag,
  })
}

export function getMembership(request: RequestContext, services: Services): void {
  const { control } = services
  const members = Object.keys(control.state()?.nodes ?? {}).sort()
  sendJson(request, services, 200, { all_nodes: control.connectedNodes(), cluster_nodes: members })
}
