/**
 * Judges a recorded history of documents, in the manner of Elle and Porcupine: each document is a chain of
 * compare-and-set operations, and the answers tell which of them took effect. Nothing here knows how the history was
 * recorded, so the same rules judge simulations and real nodes.
 */
import { databaseNames } from './database-names.ts'
import { DocumentHistory } from './document-history.ts'
import { acknowledgedKept, foundedConflicts, oneSuccess } from './edit-outcomes.ts'
import type { Finding } from './finding.ts'
import { freshReads, readsAgree } from './fresh-reads.ts'
import { knownRevisions, sameRevision } from './known-revisions.ts'
import { localDocuments } from './local-documents.ts'
import type { RecordedHistory } from './recorded-history.ts'

/** Returns all violations; an empty list when the history is valid. */
export function checkHistory(history: RecordedHistory): readonly Finding[] {
  const { edits, reads, finals, localReads, localWrites, names = [], restMs = Infinity, stemmed = false } = history
  const editsOf = Map.groupBy(edits, ({ document }) => document)
  const readsOf = Map.groupBy(reads, ({ document }) => document)
  const documents = new Set([...editsOf.keys(), ...readsOf.keys(), ...finals?.keys() ?? []])
  const writesOf = Map.groupBy(localWrites, ({ document }) => document)
  return [
    ...[...documents].flatMap(document => {
      const one = new DocumentHistory(
        document, editsOf.get(document) ?? [], readsOf.get(document) ?? [], finals?.get(document),
      )
      return [
        ...oneSuccess(one), ...knownRevisions(one), ...sameRevision(one), ...foundedConflicts(one),
        ...freshReads(one, stemmed),
        ...finals === undefined ? [] : [...acknowledgedKept(one), ...readsAgree(one, restMs)],
      ]
    }),
    ...[...Map.groupBy(localReads, ({ document }) => document)].flatMap(([document, ofDocument]) =>
      localDocuments(document, writesOf.get(document) ?? [], ofDocument)),
    ...databaseNames(names),
  ]
}
