/** Reads attachments over HTTP after the cluster has come to rest. */
import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import { attachmentContent, readContent } from '../workload/attachment-content.ts'
import type { Operation } from '../workload/history.ts'
import { Expectations } from './attachments-kept.ts'
import type { FinalDatabase, Findings } from './final-state.ts'

const readsMax = 60

/** The attachments of every leaf can be read and have the content that was written. Large runs check a sample. */
export async function attachmentsReadable(
  world: World, dice: Dice, databases: ReadonlyMap<string, FinalDatabase>, operations: readonly Operation[],
): Promise<Findings> {
  const expectations = new Expectations(operations)
  const all = [...databases].flatMap(([database, { documents }]) => [...documents].flatMap(([id, { leaves }]) => (
    leaves.flatMap(({ revision, attachments }) => attachments.map(({ name }) => ({ database, id, revision, name })))
  )))
  const findings: string[] = []
  const share = Math.min(1, readsMax / all.length)
  for (const { database, id, revision, name } of all) {
    if (!dice.chance(share)) continue
    const node = dice.pick(world.nodes).number
    const { status, body } = await world.send(node, 'GET', `/${database}/${id}/${name}?rev=${revision}`)
    const what = `${database}/${id}/${name} of ${revision}, read through node ${node},`
    if (status !== 200) findings.push(`${what} is answered ${status} ${JSON.stringify(body)}`)
    else findings.push(...wrong(String(body), expectations.of(database, id, revision)?.contents.get(name))
      .map(text => `${what} ${text}`))
  }
  return findings
}

function wrong(text: string, expected: string | null | undefined): string[] {
  if (typeof expected === 'string') {
    return text === attachmentContent(expected) ? [] : [`is not ${expected} but ${text.slice(0, 60)} (${text.length})`]
  }
  try {
    readContent(text)
    return []
  } catch (error) {
    return [(error as Error).message]
  }
}
