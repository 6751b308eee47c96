import { shardKey } from '@sectional/core'
import { isSoundBlob } from '@sectional/runtime'
import type { SimulatedNode } from '../world/simulated-node.ts'
import { openCopy } from './disk-contents.ts'
import type { Findings } from './final-state.ts'
import { namedBlobs } from './named-blobs.ts'
import type { Naming } from './named-blobs.ts'

const blobStoreName = 'attachments'

/** Blobs that no document refers to, by node. */
export type UnnamedBlobs = ReadonlyMap<string, ReadonlySet<string>>

/**
 * Each disk has every blob that its documents refer to, undamaged, and after a sweep no others.
 * @param damagedBlobs hashes of blobs that a fault has damaged. When no other replica of a shard that refers to such a
 * blob has it, it cannot be repaired
 * @param unnamed blobs that no document referred to some time ago, so that the nodes' own sweeps must have removed them
 */
export async function blobsKept(
  nodes: readonly SimulatedNode[], unnamed: UnnamedBlobs, damagedBlobs: ReadonlySet<string>,
): Promise<Findings> {
  const findings: string[] = []
  const copies = await Promise.all(nodes.map(async node => {
    const disk = node.disk.copy()
    const blobs = new Map(disk.blobs.blobs(blobStoreName))
    const host = await openCopy(disk)
    return { node, disk, blobs, host, shards: new Set(host.list().map(shardKey)), named: await namedBlobs(host) }
  }))
  const isRepairable = (hash: string, node: SimulatedNode, naming: Naming): boolean => copies.some(other =>
    other.node !== node && [...naming.shards].some(shard => other.shards.has(shard))
      && isSound(hash, other.blobs.get(hash)))
  for (const { node, disk, blobs, host, named } of copies) {
    for (const [hash, naming] of named) {
      const bytes = blobs.get(hash)
      if (bytes === undefined) findings.push(`${node.name} lacks the blob ${hash}, to which ${naming.who} refers`)
      else if (!isSound(hash, bytes) && (!damagedBlobs.has(hash) || isRepairable(hash, node, naming))) {
        findings.push(`the blob ${hash} on ${node.name}, to which ${naming.who} refers, is damaged`)
      }
    }
    const overdue = [...unnamed.get(node.name) ?? []].filter(hash => blobs.has(hash) && !named.has(hash))
    findings.push(...overdue.map(hash =>
      `the blob ${hash} on ${node.name} was not swept, although no document has referred to it for hours`))
    await host.blobs.collect()
    const left = disk.blobs.blobs(blobStoreName)
    // A node whose disk has lost writes keeps all content until its replicas are rebuilt.
    let isComplete = true
    host.onDamage({ damagedReplica: () => { isComplete = false }, damagedBlob: () => {} })
    for (const hash of left.keys()) {
      if (isComplete && !named.has(hash)) findings.push(`a sweep leaves the unreferenced blob ${hash} on ${node.name}`)
    }
    for (const [hash, { who }] of named) {
      if (blobs.has(hash) && !left.has(hash)) {
        findings.push(`a sweep on ${node.name} removes the blob ${hash}, to which ${who} refers`)
      }
    }
  }
  return findings
}

function isSound(hash: string, bytes: Uint8Array | undefined): boolean {
  return bytes !== undefined && isSoundBlob(hash, bytes)
}

export async function unnamedBlobs(nodes: readonly SimulatedNode[]): Promise<UnnamedBlobs> {
  const unnamed = new Map<string, ReadonlySet<string>>()
  for (const node of nodes) {
    const disk = node.disk.copy()
    const named = await namedBlobs(await openCopy(disk))
    unnamed.set(node.name, new Set([...disk.blobs.blobs(blobStoreName).keys()].filter(hash => !named.has(hash))))
  }
  return unnamed
}
