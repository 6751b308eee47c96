import type { Findings } from '../checkers/final-state.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import { readBrokenContents } from './broken-content.ts'
import type { DrillContext } from './drill.ts'
import { pickShard } from './shard-roles.ts'

interface ListKind {
  readonly what: string
  readonly path: string
  readonly descending?: boolean
  /** Whether the rows are in the order of the ids. */
  readonly inOrder?: boolean
}

const listKinds: readonly ListKind[] = [
  { what: 'a list', path: '_all_docs?include_docs=true', inOrder: true },
  { what: 'a list', path: '_all_docs?include_docs=true&descending=true', descending: true, inOrder: true },
  { what: 'a feed', path: '_changes?include_docs=true' },
  { what: 'a feed', path: '_changes?include_docs=true&descending=true', descending: true },
]

const documents = 7
/** Two pages of a replica have fewer documents of this size. */
const bodyBytes = 200_000
const lists = 2
const failingMs = 300

/**
 * A list of large documents, or a feed, loses the replica that it reads between two pages, because its disk fails, its
 * link breaks, or it crashes. It continues on another replica, or breaks off: a list shows each document once, in
 * order; a feed shows each document, and repeats none when it goes backwards. The same happens to attachments.
 */
export async function brokenListDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, world } = context
  const { ids } = await pickShard(context, documents)
  const written: string[] = []
  for (const id of ids) {
    const { status } = await world.write(dice.pick(world.nodes).number, database, id, { pad: 'x'.repeat(bodyBytes) })
    if (status === 201) written.push(id)
  }
  // A list reads one replica, and nodes may have lost their links in the drill before.
  await world.converge(database)
  const findings: string[] = []
  for (let list = 0; list < lists && findings.length === 0; list++) {
    const reader = dice.pick(world.nodes)
    world.moments.oncePaged(node => breakOff(context, reader, node))
    const listKind = dice.pick(listKinds)
    const { body, kind, status } = await world.send(reader.number, 'GET', `/${database}/${listKind.path}`)
    world.moments.cancel()
    const rows: readonly { readonly id: string }[] | undefined = body?.rows ?? body?.results
    if (kind === 'answered' && status === 200 && Array.isArray(rows)) {
      findings.push(...faultsOf(listKind, rows.map(({ id }) => id), written).map(finding =>
        `${listKind.what} of ${database} (${listKind.path}) through ${reader.name}, of which a replica failed between `
          + `two pages, ${finding}`))
    }
    await world.sleep(failingMs)
    for (const { number, running } of world.nodes) if (!running) await world.start(number)
    await world.allReady()
  }
  await world.converge(database)
  return findings.length > 0 ? findings : readBrokenContents(context)
}

function breakOff({ dice, disks, world }: DrillContext, reader: SimulatedNode, node: SimulatedNode): void {
  if (node !== reader && dice.chance(0.5)) {
    if (dice.chance(0.5)) world.crash(node.number)
    else world.kill(reader.number, node.number)
    return
  }
  const trouble = disks.of(node)
  trouble.failingReads = 1
  trouble.failingReadCode = 'io'
  world.queue.schedule(failingMs, 'the disk reads again', () => { trouble.failingReads = 0 })
}

function faultsOf(
  { descending = false, inOrder = false }: ListKind, ids: string[], written: readonly string[],
): Findings {
  const shown = descending ? ids.reverse() : ids
  const late = inOrder && shown.find((id, index) =>
    index > 0 && Buffer.compare(Buffer.from(shown[index - 1]!), Buffer.from(id)) >= 0)
  if (late) return [`shows ${late} twice or out of order`]
  const repeated = descending && shown.find((id, index) => shown.indexOf(id) < index)
  if (repeated) return [`shows ${repeated} twice`]
  const missing = written.filter(id => !shown.includes(id))
  return missing.length === 0 ? [] : [`omits ${missing.join(', ')}`]
}
