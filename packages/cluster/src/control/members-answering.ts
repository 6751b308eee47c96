/** Finds out which nodes answer at given addresses. It neither joins a cluster nor changes anything. */
import type { PeerIdentity, PeerNetwork, PeerStatus } from '@sectional/core'
import type { Clock } from '@sectional/runtime'

export interface MembersAnsweringParts {
  /** A network with the identity of a guest (no cluster); it need not listen. */
  readonly network: Pick<PeerNetwork, 'setPeers' | 'onChange' | 'control'>
  readonly clock: Clock
  readonly addresses: readonly string[]
  /** Milliseconds after which a node that has not answered counts as silent. */
  readonly waitMs: number
}

/** Resolves to the answers as soon as all nodes have answered, or after `waitMs`. */
export function membersAnswering(
  { network, clock, addresses, waitMs }: MembersAnsweringParts,
): Promise<readonly PeerStatus[]> {
  const answers = new Map<string, PeerStatus>()
  if (addresses.length === 0) return Promise.resolve([])
  return new Promise(resolve => {
    const end = (): void => {
      timer.cancel()
      unsubscribe()
      resolve([...answers.values()])
    }
    const timer = clock.setTimer(waitMs, end)
    const answered = (status: PeerStatus): void => {
      answers.set(status.node, status)
      if (answers.size === addresses.length) end()
    }
    const unsubscribe = network.onChange((peer: PeerIdentity, up) => {
      // When a link ends before the answer, the network connects again, and the new link leads to a new call.
      if (up) network.control(peer.node).status({ timeoutMs: waitMs }).then(answered, () => {})
    })
    network.setPeers(addresses)
  })
}
