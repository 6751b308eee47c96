/** The positions of databases that nobody writes to. */
import type { World } from '../world/world.ts'
import type { Findings } from './final-state.ts'

/** Milliseconds after which all nodes know which replica has received what. */
const settledMsMax = 20_000
const pollMs = 1000

/**
 * On a database at rest, `update_seq` of `GET /{db}` and `last_seq` of its changes feed are the same text through every
 * node, so that a client that compares them knows that it has read everything.
 */
export async function tokensAtRest(world: World, databases: readonly string[]): Promise<Findings> {
  const findings: string[] = []
  for (const database of databases) {
    const endMs = world.nowMs + settledMsMax
    for (;;) {
      const different = await differentTokens(world, database)
      if (different === null) break
      if (world.nowMs > endMs) {
        findings.push(different)
        break
      }
      await world.sleep(pollMs)
    }
  }
  return findings
}

async function differentTokens(world: World, database: string): Promise<string | null> {
  const tokens = new Map<string, string>()
  for (const { name, number } of world.nodes) {
    const { body: information } = await world.send(number, 'GET', `/${database}`)
    const { body: changes } = await world.send(number, 'GET', `/${database}/_changes`)
    tokens.set(String(information.update_seq), `update_seq of ${name}`)
    tokens.set(String(changes.last_seq), `last_seq of ${name}`)
  }
  return tokens.size === 1 ? null
    : `${database} is at rest, but ${[...tokens].map(([token, of]) => `${of} is ${token}`).join(', ')}`
}
