import { spliceDocument } from '@sectional/core'
import type { SandboxFunction } from '@sectional/runtime'
import type { DesignDocument } from '../contracts/design-document.ts'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { selectorRule, type SelectorRule } from './selector-rules.ts'
import { usersDatabase } from './user-document-rules.ts'

/** A function or a set of rules that every write of a database must pass. */
export type Validator =
  /** `validate_doc_update` in JavaScript. */
  | { readonly kind: 'javascript'; readonly called: SandboxFunction }
  /** `validate_doc_update` as a selector (`language: "query"`). */
  | { readonly kind: 'selector'; readonly rule: SelectorRule }
  /**
   * `validate_doc_update` in a language that this version does not run. Writes are refused, because validation is never
   * skipped.
   */
  | { readonly kind: 'unsupported'; readonly designDocument: string; readonly language: string }
  /** The rules of the users database, which no design document contains. */
  | { readonly kind: 'user-documents' }

/** Returns true when writes of the database are validated although no design document contains a function. */
export function hasRules({ name }: DatabaseRecord): boolean {
  return name === usersDatabase
}

/** @param validating the design documents with the member `validate_doc_update` */
export function validatorsOf(db: DatabaseRecord, validating: readonly DesignDocument[]): readonly Validator[] {
  const functions = validating.map(document => validatorOf(db, document))
  return hasRules(db) ? [{ kind: 'user-documents' }, ...functions] : functions
}

/** Returns the validator of a document with the member `validate_doc_update`. */
function validatorOf({ incarnation }: DatabaseRecord, document: DesignDocument): Validator {
  const { validate_doc_update: source, language = 'javascript' } = document.members
  const { id: designDocument } = document
  if (language === 'query') return { kind: 'selector', rule: selectorRule(document) }
  if (language !== 'javascript' || typeof source !== 'string') {
    return { kind: 'unsupported', designDocument, language: String(language) }
  }
  // Each call in the sandbox counts the bytes of the modules, so they are passed only to functions that may need them.
  const modules = /require|this/.test(source) ? document.derived(designText) : '{}'
  return { kind: 'javascript', called: { database: incarnation, designDocument, modules, source } }
}

/** Returns the design document as `require` and `this` of its function see it: without its attachments. */
function designText({ id, revision, body }: DesignDocument): string {
  return spliceDocument({ id, revision, body }).toString()
}
