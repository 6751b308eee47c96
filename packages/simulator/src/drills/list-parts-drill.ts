import type { Findings } from '../checkers/final-state.ts'
import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import { DrillDocuments, getAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'

const lists = 8

/** Parts of the list of documents, through any node, are those of the whole list, with the right offset. */
export async function listPartsDrill(context: DrillContext): Promise<Findings> {
  const { database, dice, world } = context
  await new DrillDocuments(context).make()
  await world.converge(database)
  return listParts(world, dice, database)
}

/** Compares drawn parts of the list of a database at rest with the whole list. */
export async function listParts(world: World, dice: Dice, database: string): Promise<Findings> {
  const { body: whole, status } = await getAtRest(world, 1, `/${database}/_all_docs`)
  if (status !== 200) return []
  const ids: readonly string[] = whole.rows.map(({ id }: { readonly id: string }) => id)
  const findings: string[] = []
  for (let list = 0; list < lists; list++) {
    const descending = dice.chance(0.3)
    const ordered = descending ? ids.toReversed() : ids
    const start = dice.chance(0.5) ? dice.integer(0, ordered.length - 1) : 0
    const skip = dice.chance(0.6) ? dice.integer(0, ordered.length) : 0
    const limit = dice.integer(1, ordered.length)
    const query = `skip=${skip}&limit=${limit}&descending=${descending}`
      + (start > 0 ? `&startkey=${encodeURIComponent(JSON.stringify(ordered[start]))}` : '')
    const through = dice.pick(world.nodes)
    const { body, ...answer } = await getAtRest(world, through.number, `/${database}/_all_docs?${query}`)
    if (answer.status !== 200) continue
    const shown = body.rows.map(({ id }: { readonly id: string }) => id).join(' ')
    const expected = ordered.slice(start + skip, start + skip + limit).join(' ')
    if (shown !== expected) findings.push(`_all_docs?${query} through ${through.name} shows ${shown}, not ${expected}`)
    const offset = Math.min(ordered.length, start + skip)
    if (body.offset !== offset) findings.push(`_all_docs?${query} has the offset ${body.offset}, not ${offset}`)
  }
  return findings
}
