import assert from 'node:assert/strict'
import type { LinkIdentity } from '../../src/link/handshake.ts'
import type { PeerLink } from '../../src/link/peer-link.ts'
import { RivalCheck } from '../../src/link/rival-check.ts'

function identity(instance: string): LinkIdentity {
  return { node: 'a', address: `${instance}:1`, clusterId: 'c1', instance }
}

describe('the check for another process of the same name', () => {
  for (const answering of [0, 1]) {
    it(`refuses a newcomer when one of two links answers (${answering})`, async () => {
      const links = [1, 2].map(() => ({ usable: true, peer: identity('old') }) as PeerLink)
      const check = new RivalCheck({
        limits: { rivalProbeMs: 1, silenceMs: 2 }, linksOf: () => links, probe: async link => link === links[answering],
      })
      assert.equal((await check.admit(identity('new')))?.kind, 'rival')
    })
  }
})
