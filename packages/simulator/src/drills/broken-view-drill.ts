import { documentStoreName } from '@sectional/server'
import type { Findings } from '../checkers/final-state.ts'
import { deleteEverywhere } from './drill.ts'
import type { DrillContext } from './drill.ts'

const documents = 7
/** Two pages of an index have fewer rows of this size. */
const valueBytes = 200_000
const rounds = 2
const behindChance = 0.6
const indexedMs = 5000
/** Longer than a page takes to its reader. */
const arrivedMs = 300
const map = 'function (doc) { emit(doc.key, doc.pad) }'

/**
 * A database has two replicas, on other nodes than the reader's. Often one has missed an edit that moves the row of a
 * document. A view loses the replica that it is read from between two pages. The answer breaks off, or it shows each
 * document once that it does not skip.
 */
export async function brokenViewDrill({ dice, disks, world }: DrillContext): Promise<Findings> {
  const name = `view${dice.seed()}`
  const setter = dice.pick(world.nodes).number
  const findings: string[] = []
  const created = await world.send(setter, 'PUT', `/${name}?q=1&n=2`)
  if (created.status === 201) {
    const { replicas } = world.node(setter).inside!.control.state()!.databases.get(name)!.shards[0]!
    const reader = dice.pick(world.nodes.filter(node => !replicas.some(replica => replica.node === node.name)))
    const pad = 'x'.repeat(valueBytes)
    const ids = Array.from({ length: documents }, (_, index) => `drill${index}`)
    const revisions = new Map<string, string>()
    await world.write(reader.number, name, '_design/drill', { views: { moved: { map } } })
    for (const [key, id] of ids.entries()) {
      const { body, status } = await world.write(reader.number, name, id, { key, pad })
      if (status === 201) revisions.set(id, body.rev)
    }
    const view = `/${name}/_design/drill/_view/moved`
    for (let round = 0; round < rounds && revisions.size === documents && findings.length === 0; round++) {
      await world.converge(name)
      await world.send(reader.number, 'GET', `${view}?limit=1`)
      await world.sleep(indexedMs)
      const behind = dice.pick(world.nodes.filter(node => replicas.some(replica => replica.node === node.name)))
      const trouble = disks.of(behind)
      if (dice.chance(behindChance)) {
        Object.assign(trouble, { full: true, store: documentStoreName })
        const [id] = ids
        const _rev = revisions.get(id!)
        const edited = await world.write(reader.number, name, id!, { key: round === 0 ? documents : 0, pad, _rev })
        revisions.set(id!, edited.body?.rev)
        await world.send(reader.number, 'GET', `${view}?limit=1`)
      }
      const crashes = dice.chance(0.5)
      const skip = dice.integer(0, 1)
      world.moments.onceIndexPaged(async node => {
        await world.sleep(arrivedMs)
        if (crashes) world.crash(node.number)
        else world.kill(reader.number, node.number)
      })
      const query = `?update=${dice.chance(0.5)}&skip=${skip}`
      const { body, kind, status } = await world.send(reader.number, 'GET', view + query)
      world.moments.cancel()
      Object.assign(trouble, { full: false, store: undefined })
      for (const { number, running } of world.nodes) if (!running) await world.start(number)
      await world.allReady()
      if (kind !== 'answered' || status !== 200 || !Array.isArray(body?.rows)) continue
      const shown = body.rows.map((row: { readonly id: string }) => row.id).toSorted()
      if (shown.length === documents - skip && new Set(shown).size === shown.length) continue
      findings.push(`a view of ${name} through ${reader.name}, of which a replica failed between two pages, shows `
        + `${shown.join(', ')} of ${ids.join(', ')} without the first ${skip}`)
    }
  }
  await deleteEverywhere(world, setter, name)
  return findings
}
