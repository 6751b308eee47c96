/** The rule that an answer or a state violates. */
export type Rule =
  | 'one-success' | 'conflicts-final' | 'founded-conflicts' | 'known-revisions' | 'same-revision' | 'fresh-reads'
  | 'reads-agree' | 'acknowledged-kept' | 'local-documents' | 'database-names'

export interface Finding {
  readonly rule: Rule
  readonly text: string
}
