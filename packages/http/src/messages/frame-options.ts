/** Says which pages may show answers of this server in a frame (X-Frame-Options, RFC 7034). It is off by default. */
import type { HttpOptions } from '../settings/http-options.ts'

/**
 * Returns the value of the header.
 * @param origin scheme and host by which the client addresses this server
 */
export function frameOptions(
  { framesOfSameOrigin, frameHosts }: Pick<HttpOptions, 'framesOfSameOrigin' | 'frameHosts'>, origin: string,
): string {
  if (framesOfSameOrigin) return 'SAMEORIGIN'
  return frameHosts.includes('*') || frameHosts.includes(origin) ? `ALLOW-FROM ${origin}` : 'DENY'
}
