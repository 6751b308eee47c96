/** Saves a validation function, which refuses some of the values that all actions write. */
import { rulesKept } from '../checkers/rules-kept.ts'
import { readRow, readWritten } from '../workload/client-session.ts'
import type { ClientSession } from '../workload/client-session.ts'
import { ruleSource, rulesDesign } from '../workload/value-rule.ts'
import type { SwarmAction } from './action.ts'

export const validationActions: readonly SwarmAction[] = [
  {
    name: 'save-rule', weight: 3, family: { name: 'validation', leftOutChance: 0.7 }, act: saveRule,
    checkers: { 'rules-kept': rulesKept },
  },
]

/** Probability that the rule is written together with another document. */
const togetherChance = 0.5

/** Writes the design document with the rule, or a further revision of it. The rule itself never changes. */
async function saveRule(session: ClientSession, database: string): Promise<void> {
  const { status, body } = await session.look('GET', `/${database}/${rulesDesign}`)
  const parent: string | null = status === 200 ? body._rev : null
  const value = session.newValue()
  const json = {
    ...session.body(value), ...(parent !== null && { _rev: parent }), validate_doc_update: ruleSource,
  }
  if (session.dice.chance(togetherChance)) return saveTogether(session, database, { parent, value, json })
  const target = `/${database}/${rulesDesign}${session.quorum('?')}`
  const [operation] = await session.ask(database, 'PUT', target, { json }, [
    { kind: 'write', id: rulesDesign, value, parent, read: readWritten },
  ])
  session.remember(operation!)
}

/** Writes the rule and another document, whose value the rule may refuse, with one request. */
async function saveTogether(
  session: ClientSession, database: string,
  { parent, value, json: rule }: { readonly parent: string | null; readonly value: string; readonly json: object },
): Promise<void> {
  const { w } = session.options
  const id = session.documentId()
  const other = { id, parent: session.known(database, id) ?? null, value: session.drawValue() }
  const docs = [
    { _id: rulesDesign, ...rule },
    { _id: id, ...(other.parent !== null && { _rev: other.parent }), ...session.body(other.value) },
  ]
  const json = { docs, ...(w !== undefined && { w }) }
  const operations = await session.ask(database, 'POST', `/${database}/_bulk_docs`, { json }, [
    { kind: 'write', id: rulesDesign, value, parent, read: answer => readRow(answer, 0) },
    { ...other, kind: 'write', read: answer => readRow(answer, 1) },
  ])
  for (const operation of operations) session.remember(operation)
}
