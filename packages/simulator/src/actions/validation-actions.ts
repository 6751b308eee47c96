/** Saves a validation function, which refuses some of the values that all actions write. */
import { rulesKept } from '../checkers/rules-kept.ts'
import { readWritten } from '../workload/client-session.ts'
import type { ClientSession } from '../workload/client-session.ts'
import { ruleSource, rulesDesign } from '../workload/value-rule.ts'
import type { SwarmAction } from './action.ts'

export const validationActions: readonly SwarmAction[] = [
  {
    name: 'save-rule', weight: 3, family: { name: 'validation', leftOutChance: 0.7 }, act: saveRule,
    checkers: { 'rules-kept': rulesKept },
  },
]

/** Writes the design document with the rule, or a further revision of it. The rule itself never changes. */
async function saveRule(session: ClientSession, database: string): Promise<void> {
  const { status, body } = await session.look('GET', `/${database}/${rulesDesign}`)
  const parent: string | null = status === 200 ? body._rev : null
  const value = session.newValue()
  const json = {
    ...session.body(value), ...(parent !== null && { _rev: parent }), validate_doc_update: ruleSource,
  }
  const target = `/${database}/${rulesDesign}${session.quorum('?')}`
  const [operation] = await session.ask(database, 'PUT', target, { json }, [
    { kind: 'write', id: rulesDesign, value, parent, read: readWritten },
  ])
  session.remember(operation!)
}
