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
 * Returns the milliseconds to wait for a page of rows of a replica. While other replicas can take over, it is the time
 * limit of a page. The last one may take as long as any other call: on a busy node, an error would help nobody.
 *
 * @param usable number of replicas that can be read, including this one
 */
export function pageTimeoutMs({ options }: Pick<WatchScope, 'options'>, usable: number): number {
  return usable > 1 ? options.scanPageTimeoutMs : options.requestTimeoutMs
}

/**
 * Ends the reading of pages. Resolves when its last call has ended, which takes up to `pageTimeoutMs` for a silent
 * replica. Never rejects: a replica that fails meanwhile has nothing left to release.
 */
export async function releasePages(pages: AsyncIterator<unknown>): Promise<void> {
  await pages.return?.().then(() => {}, () => {})
}
