import { finalDatabase } from '../checkers/final-state.ts'
import type { Findings } from '../checkers/final-state.ts'
import { readReplicas } from '../checkers/disk-contents.ts'
import { findsExact } from '../checkers/finds-exact.ts'
import { viewsExact } from '../checkers/views-exact.ts'
import { indexSourceOf, pairedIndexes, swarmIndexes } from '../views/swarm-indexes.ts'
import { sourceOf, swarmViews } from '../views/view-functions.ts'
import type { Dice } from '../world/dice.ts'
import { deleteEverywhere } from './drill.ts'
import type { DrillContext } from './drill.ts'
import { listParts } from './list-parts-drill.ts'

/** Indexes are read in runs of some 64 rows, and documents in pages of at most 128. */
const documents = 160
const shardsMax = 3
/** Probability that a document has the value that most documents have. */
const commonChance = 0.5
const padChance = 0.8
const deletedChance = 0.25
const editedChance = 0.25
/** Views and indexes of the database, each. */
const definitionsDrawn = 3
const pairChance = 0.5
/** Names of views and indexes, in their order. */
const letters = 'abcdefghij'

interface Row { readonly id: string; readonly rev?: string }

/**
 * A database has more documents than a page of a list or a run of an index. Some are edited or deleted. Lists, views
 * and queries by selector, and parts of them, show what its documents have.
 */
export async function manyDocumentsDrill({ dice, world }: DrillContext): Promise<Findings> {
  const name = `many${dice.seed()}`
  const through = dice.pick(world.nodes).number
  const { status } = await world.send(through, 'PUT', `/${name}?q=${dice.integer(1, shardsMax)}&n=3`)
  if (status !== 201) return []
  const write = async (docs: readonly object[]): Promise<readonly Row[]> => {
    const { body } = await world.send(dice.pick(world.nodes).number, 'POST', `/${name}/_bulk_docs`, { docs })
    return Array.isArray(body) ? body : []
  }
  const bodies = Array.from({ length: documents }, () => drawBody(dice))
  const written = await write(bodies.map((body, index) => ({ _id: `d${index}`, ...body })))
  await write([...written.flatMap(row => nextRevision(dice, row)), ...designDocuments(dice)])
  await world.converge(name)
  const record = world.node(through).inside!.control.state()!.databases.get(name)!
  const databases = new Map([[name, finalDatabase(record, await readReplicas(world.nodes, record))]])
  const findings = [
    ...await viewsExact(world, dice, databases, 1), ...await findsExact(world, dice, databases, 1),
    ...await listParts(world, dice, name),
  ]
  await deleteEverywhere(world, through, name)
  return findings
}

/** Returns the members of a document that the views and indexes of the swarm read. */
function drawBody(dice: Dice): object {
  const v = dice.chance(commonChance) ? 'c1.1' : `c${dice.integer(1, 6)}.${dice.integer(1, 12)}`
  return { v, ...(dice.chance(padChance) && { pad: '' }) }
}

function nextRevision(dice: Dice, { id, rev }: Row): object[] {
  if (rev === undefined) return []
  const next = { _id: id, _rev: rev }
  if (dice.chance(deletedChance)) return [{ ...next, _deleted: true }]
  return dice.chance(editedChance) ? [{ ...next, ...drawBody(dice) }] : []
}

function designDocuments(dice: Dice): object[] {
  const indexes = dice.chance(pairChance) ? pairedIndexes : dice.sample(swarmIndexes, definitionsDrawn)
  return [
    { _id: '_design/views', views: named(dice.sample(swarmViews, definitionsDrawn).map(sourceOf)) },
    { _id: '_design/indexes', language: 'query', views: named(indexes.map(indexSourceOf)) },
  ]
}

function named<Definition>(definitions: readonly Definition[]): Record<string, Definition> {
  return Object.fromEntries(definitions.map((definition, at) => [letters[at]!, definition]))
}
