/** Declares how many client connections an HTTP listener holds. */
import { integer, option } from '@sectional/core/options'

export const connectionDeclarations = {
  /** The effective number is lower when the process may not open that many descriptors. */
  connectionsMax: option('limits/connections', integer({ min: 1, max: 10_000_000 }), {
    default: 32_768,
    effect: 'restart',
    help: 'HTTP connections at the same time; fewer where the process may open few descriptors (ulimit -n), since half '
      + 'of them, 3000 at most, are kept for storage and links. Beyond it the connection that has been idle for '
      + 'longest is closed; where all are busy, a new one gets 503 with Retry-After, and only /_up is answered.',
  }),

  addressPercent: option('limits/connections_per_address', integer({ min: 1, max: 100, unit: 'percent' }), {
    default: 75,
    effect: 'restart',
    help: 'Part of the connections that clients of one address may hold; 100 where all clients come through one load '
      + 'balancer.',
  }),
}
