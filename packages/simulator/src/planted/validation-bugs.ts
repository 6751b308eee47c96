/** Bugs of the validation of writes. */
import { designPrefix } from '@sectional/core'
import type { DocumentReplica } from '@sectional/core'
import { rulesDesign } from '../workload/value-rule.ts'
import { everyNth, replicaBug, withChanges } from './planted-bug.ts'
import type { PlantedBug } from './planted-bug.ts'

const caughtBy = ['rules-kept']

export const validationBugs: readonly PlantedBug[] = [
  {
    name: 'functions-that-pass',
    does: 'every third call of validation functions finds all documents valid',
    caughtBy,
    plant: () => () => ({
      runtime: runtime => {
        const passes = everyNth(3)
        const { sandbox } = runtime
        const call: typeof sandbox.call = async (called, argumentLists) =>
          called.designDocument === rulesDesign && passes()
            ? argumentLists.map(() => ({ kind: 'value', json: 'true' }))
            : sandbox.call(called, argumentLists)
        return { ...runtime, sandbox: withChanges(sandbox, { call }) }
      },
    }),
  },
  replicaBug({
    name: 'unlisted-design-documents',
    does: 'replicas do not list design documents, so that nodes do not know their functions',
    caughtBy: [...caughtBy, 'fresh-reads'],
  }, replica => {
    const scanDocuments: DocumentReplica['scanDocuments'] = async function* (request, context) {
      for await (const page of replica.scanDocuments(request, context)) {
        yield page.filter(({ id }) => !id.startsWith(designPrefix))
      }
    }
    return { scanDocuments }
  }),
]
