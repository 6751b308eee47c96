import { parseJsonObject } from '@sectional/core'
import type { AttachmentRecord, JsonObject } from '@sectional/core'

/**
 * A design document in the cache of a node. The same object is returned for each request until the document changes, so
 * that other modules can keep what they derive from it (`derived`).
 */
export class DesignDocument {
  /** With `_design/`. */
  readonly id: string
  readonly revision: string
  /** Text of a JSON object without special members. */
  readonly body: Uint8Array
  readonly attachments: readonly AttachmentRecord[]
  #members: JsonObject | undefined
  /** By the function that derived the value. */
  #derived: Map<(document: DesignDocument) => unknown, unknown> | undefined

  constructor(id: string, revision: string, body: Uint8Array, attachments: readonly AttachmentRecord[] = []) {
    this.id = id
    this.revision = revision
    this.body = body
    this.attachments = attachments
  }

  /** The members of the body, parsed when they are first read. They must not be changed. */
  get members(): JsonObject {
    return this.#members ??= parseJsonObject(this.body)
  }

  /**
   * Returns what a function derives from the document. The result is kept as long as the document, so pass only
   * functions that exist once in the process.
   */
  derived<Result>(derive: (document: DesignDocument) => Result): Result {
    this.#derived ??= new Map()
    if (!this.#derived.has(derive)) this.#derived.set(derive, derive(this))
    return this.#derived.get(derive) as Result
  }
}

/**
 * The design documents of one database that are not deleted, by their ids, at one moment. A map does not change after
 * it was read.
 */
export class DesignDocuments extends Map<string, DesignDocument> {
  #validating: readonly DesignDocument[] | undefined

  /** The documents with the member `validate_doc_update`, in the order of their ids. */
  get validating(): readonly DesignDocument[] {
    return this.#validating ??= [...this.values()]
      .filter(({ members }) => (members['validate_doc_update'] ?? null) !== null)
      .sort((a, b) => a.id < b.id ? -1 : 1)
  }
}
