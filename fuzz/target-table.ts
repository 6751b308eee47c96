/** All targets of the fuzzer. */
import type { FuzzTarget } from './fuzz-target.ts'
import { documentTargets } from './targets/documents.ts'
import { credentialTargets } from './targets/http-credentials.ts'
import { httpTargets } from './targets/http-requests.ts'
import { peerTargets } from './targets/peers.ts'
import { socketTargets } from './targets/sockets.ts'
import { parserTargets } from './targets/parsers.ts'

export const fuzzTargets: readonly FuzzTarget[] = [
  ...parserTargets, ...documentTargets, ...peerTargets, ...httpTargets, ...credentialTargets, ...socketTargets,
]
