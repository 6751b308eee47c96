/** Declares how many client connections an HTTP listener holds. */
import { integer, option } from '@sectional/core/options'

export const connectionDeclarations = {
  /** The effective number is lower when the process may not open that many descriptors. */
  connectionsMax: option('limits/connections', integer({ min: 1, max: 10_000_000 }), {
    default: 32_768,
    effect: 'restart',
    help: 'Maximum number of HTTP connections. The limit is lower if the process may open few descriptors (ulimit -n), '
      + 'because half of them, 3000 at most, are reserved for storage and links. At the limit, the connection that '
      + 'has been idle for longest is closed; if all are busy, a new one gets 503 with Retry-After, and only /_up '
      + 'is served.',
  }),

  addressPercent: option('limits/connections_per_address', integer({ min: 1, max: 100, unit: 'percent' }), {
    default: 75,
    effect: 'restart',
    help: 'Maximum part of the connections that clients of one address, or of one /64 network of IPv6, may hold. Set '
      + '100 if all clients come through one load balancer.',
  }),
}
