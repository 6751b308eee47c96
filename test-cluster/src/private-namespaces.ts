/** Runs a command in network and mount namespaces of its own, which end with it. */
import { spawn, spawnSync } from 'node:child_process'

const unshare = ['unshare', '--net', '--mount', '--propagation', 'private', '--']
/** What tests do in such namespaces: network namespaces inside it, bridges, pairs of interfaces and small disks. */
const attempt = 'set -e; name=sectional-attempt-$$; ip netns add $name; trap "ip netns del $name" EXIT; '
  + 'ip link add nodes type bridge; ip link add node type veth peer name eth0 netns $name; '
  + 'mount -t tmpfs -o size=64k tmpfs /mnt'

/** Returns whether this process may create namespaces, and all that tests do in them. It needs root on Linux. */
export function hasNamespaces(): boolean {
  const { status } = spawnSync(unshare[0]!, [...unshare.slice(1), 'sh', '-c', attempt], { stdio: 'ignore' })
  return status === 0
}

/**
 * Runs a command in namespaces of its own, and passes on signals. Call `hasNamespaces` before.
 *
 * @returns the exit status
 */
export function runInNamespaces(words: readonly string[]): Promise<number> {
  const child = spawn(unshare[0]!, [...unshare.slice(1), ...words], { stdio: 'inherit' })
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, () => { child.kill(signal) })
  process.once('exit', () => { child.kill('SIGTERM') })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', status => { resolve(status ?? 1) })
  })
}
