/** Pages of rows that one replica sends. */
import { unlessSilent, type WatchScope } from './silence-watch.ts'
import type { Peer } from '../replicas/replica-access.ts'

/**
 * Returns the next page; undefined at the end.
 * @throws ReplicaError `timeout` as soon as the replica is silent
 */
export async function nextPage<Page>(
  scope: WatchScope, peer: Peer, pages: AsyncIterator<Page>,
): Promise<Page | undefined> {
  const page = pages.next()
  const { value, done } = await (peer.local ? page : unlessSilent(scope, peer, page))
  return done ? undefined : value
}

/**
 * Ends the reading of pages. Resolves when its last call has ended, which takes up to `scanPageTimeoutMs` for a silent
 * replica. Never rejects: a replica that fails meanwhile has nothing left to release.
 */
export async function releasePages(pages: AsyncIterator<unknown>): Promise<void> {
  await pages.return?.().then(() => {}, () => {})
}
