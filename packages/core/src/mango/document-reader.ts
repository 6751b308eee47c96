import { MemberReader } from '../json/member-reader.ts'
import type { FieldPath } from '../selectors/field-path.ts'
import { addSpecialMembers, selectorDocument, type StoredDocument } from './selector-document.ts'

/** With more paths, finding their members takes longer than parsing the document. */
const pathsMax = 32

/** Returns whether reading goes on after the member with that name was set. */
export type AcceptMember = (name: string) => boolean

/**
 * Reads the fields of stored documents to which some paths lead, without parsing the rest of the documents. What
 * `fieldAt` returns for these paths is the same as with whole documents.
 */
export class DocumentReader {
  readonly #members: MemberReader | undefined
  /** Whether a path begins with a member that bodies do not have, such as `_id`. */
  readonly #hasSpecial: boolean

  constructor(paths: readonly FieldPath[]) {
    this.#members = paths.length > pathsMax ? undefined : new MemberReader(paths)
    this.#hasSpecial = paths.some(([first]) => first!.startsWith('_'))
  }

  /** @throws SyntaxError when the body is not JSON */
  read(document: StoredDocument): Readonly<Record<string, unknown>> {
    const members: Record<string, unknown> = {}
    return this.readWhile(document, members, () => true) ?? members
  }

  /**
   * Like `read`, but ends as soon as a member of the body is not accepted.
   *
   * @param into an empty object, which receives the members
   * @param accepts may not be called for any member
   * @returns the document; undefined when a member was not accepted
   */
  readWhile(
    document: StoredDocument, into: Record<string, unknown>, accepts: AcceptMember,
  ): Readonly<Record<string, unknown>> | undefined {
    if (this.#members === undefined) return selectorDocument(document)
    if (this.#hasSpecial) addSpecialMembers(into, document)
    return this.#members.read(document.body, into, accepts) ? into : undefined
  }
}
