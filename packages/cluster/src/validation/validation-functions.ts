import { asBuffer } from '@sectional/core'
import type { SandboxFunction } from '@sectional/runtime'
import type { DesignDocument } from '../contracts/design-document.ts'
import type { DatabaseRecord } from '../control/cluster-state.ts'

/** A function or rule of one design document that every write of its database must pass. */
export type Validator =
  /** `validate_doc_update` in JavaScript. */
  | { readonly kind: 'javascript'; readonly called: SandboxFunction }
  /**
   * `validate_doc_update` in a language that this version does not run, such as a selector (`language: "query"`).
   * Writes are refused, because validation is never skipped.
   */
  | { readonly kind: 'unsupported'; readonly designDocument: string; readonly language: string }

/** Returns the validator of a document with the member `validate_doc_update`. */
export function validatorOf({ incarnation }: DatabaseRecord, document: DesignDocument): Validator {
  const { validate_doc_update: source, language = 'javascript' } = document.members
  const { id: designDocument } = document
  if (language !== 'javascript' || typeof source !== 'string') {
    return { kind: 'unsupported', designDocument, language: String(language) }
  }
  // Each call in the sandbox counts the bytes of the modules, so they are passed only to functions that may need them.
  const modules = source.includes('require') ? asBuffer(document.body).toString('utf8') : '{}'
  return { kind: 'javascript', called: { database: incarnation, designDocument, modules, source } }
}
