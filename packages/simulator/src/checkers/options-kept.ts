import type { DatabaseRecord } from '@sectional/server'
import { localDocuments } from '../history/local-documents.ts'
import type { LocalWrite } from '../history/index.ts'
import type { OperationKind } from '../workload/history.ts'
import { describe } from './final-state.ts'
import type { FinalState, Findings } from './final-state.ts'

interface KeptOption {
  readonly kind: OperationKind
  readonly of: (record: DatabaseRecord) => unknown
  /** The value of a database for which nobody has set the option. */
  readonly unset: unknown
}

const options: readonly KeptOption[] = [
  { kind: 'custom:purged-infos-limit', of: record => record.purgedInfosLimit, unset: 1000 },
  { kind: 'custom:auto-purge', of: record => record.autoPurge, unset: {} },
  {
    kind: 'custom:security', of: record => record.security,
    unset: { members: { roles: ['_admin'] }, admins: { roles: ['_admin'] } },
  },
]

/**
 * At rest, an option of a database has a value that some request may have set last. Changes of the metadata are
 * linearizable, so a value that an acknowledged request has replaced does not return, and a change of one option leaves
 * the others as they are.
 */
export function optionsKept(state: FinalState): Findings {
  return [...state.databases].flatMap(([name, { record }]) => options.flatMap(option => {
    const unset = JSON.stringify(option.unset)
    const contentOf = (text: string): string | null => text === unset ? null : text
    const read = {
      label: 'the metadata at rest', document: `${name} ${option.kind}`, startMs: Infinity, endMs: Infinity,
      content: contentOf(JSON.stringify(option.of(record))), fresh: true,
    }
    return localDocuments(read.document, writesOf(state, record, option.kind, contentOf), [read])
      .map(({ text }) => text)
  }))
}

function writesOf(
  { operations }: FinalState, record: DatabaseRecord, kind: OperationKind, contentOf: (text: string) => string | null,
): LocalWrite[] {
  return operations.filter(operation => operation.kind === kind && operation.database === record.name)
    .flatMap((operation): LocalWrite[] => {
      const { incarnationAfter, incarnationBefore, endMs, outcome, startMs, value } = operation
      const isCertain = incarnationBefore === incarnationAfter
      if (isCertain && incarnationBefore !== record.incarnation) return []
      // The change of an option is answered with 200 or 202, and never below a majority.
      const known = outcome === 'accepted' ? 'done' : outcome === 'failed' ? 'refused' : outcome
      return [{
        label: describe(operation), document: record.name, startMs, endMs, content: contentOf(value),
        outcome: isCertain || known === 'refused' ? known : 'unknown',
      }]
    })
}
