import { contentDigest } from '../workload/attachment-content.ts'
import type { ContentName } from '../workload/attachment-content.ts'
import { makesRevision } from '../workload/history.ts'
import type { Operation } from '../workload/history.ts'
import type { LeafContents } from './disk-contents.ts'
import { allLeaves, describe, isOf } from './final-state.ts'
import type { FinalState, Findings } from './final-state.ts'

/** The attachments that a revision must have according to the requests that wrote it. */
interface Expected {
  readonly writer: Operation
  /** Contents by attachment name; null when the content is not known. */
  readonly contents: ReadonlyMap<string, ContentName | null>
  /** Whether the revision must have no other attachments. */
  readonly complete: boolean
}

const writersMax = 1000

/**
 * Each leaf whose write was acknowledged lists the attachments that it was written with and those that it inherited.
 * Each read of an attachment returned content that some client had written under that name.
 */
export function attachmentsKept(state: FinalState): Findings {
  const expectations = new Expectations(state.operations)
  const listed = allLeaves(state).flatMap(({ name, final, id, leaf }) => {
    const expected = expectations.of(name, id, leaf.revision)
    return expected === undefined || !isOf(expected.writer, final)
      ? []
      : differences(expected, leaf)
        .map(text => `${name}/${id} ${leaf.revision}: ${text}, after ${describe(expected.writer)}`)
  })
  return [...listed, ...wrongReads(state.operations)]
}

function differences({ contents, complete }: Expected, { attachments }: LeafContents): string[] {
  const found = new Map(attachments.map(record => [record.name, record]))
  const missing = [...contents].flatMap(([name, content]) => {
    const record = found.get(name)
    if (record === undefined) return [`the attachment ${name} is missing`]
    // The digest of compressed content covers the compressed bytes, so that content is checked when it is read.
    return content === null || record.encoding !== 'identity' || record.digest === contentDigest(content)
      ? []
      : [`the attachment ${name} is not ${content}`]
  })
  const surplus = complete
    ? [...found.keys()].filter(name => !contents.has(name)).map(name => `there is an attachment ${name}`)
    : []
  return [...missing, ...surplus]
}

function wrongReads(operations: readonly Operation[]): string[] {
  const written = new Set(operations.flatMap(({ database, id, attachments }) =>
    Object.entries(attachments?.contents ?? {}).map(([name, content]) => `${database}/${id}/${name} ${content}`)))
  return operations.filter(({ kind, database, id, value, readValue }) =>
    kind === 'read-attachment' && readValue !== undefined && !written.has(`${database}/${id}/${value} ${readValue}`))
    .map(read => `${describe(read)} got ${read.readValue} for the attachment ${read.value}`)
}

/** The attachments of each revision as far as the requests of clients determine them. */
export class Expectations {
  readonly #writers = new Map<string, Operation>()

  constructor(operations: readonly Operation[]) {
    for (const operation of operations) {
      const { database, id, revision } = operation
      if (makesRevision(operation) && revision !== undefined) {
        this.#writers.set(`${database}/${id} ${revision}`, operation)
      }
    }
  }

  of(database: string, id: string, revision: string): Expected | undefined {
    const writers: Operation[] = []
    let parent: string | null = revision
    while (parent !== null && writers.length < writersMax) {
      const writer = this.#writers.get(`${database}/${id} ${parent}`)
      if (writer === undefined) break
      writers.push(writer)
      parent = inherits(writer) ? writer.parent : null
    }
    const [last] = writers
    if (last === undefined) return undefined
    const contents = new Map<string, ContentName | null>()
    for (const { attachments } of writers.reverse()) apply(attachments, contents)
    return { writer: last, contents, complete: parent === null && !isUnsure(writers[0]!) }
  }
}

function inherits({ attachments }: Operation): boolean {
  return attachments !== undefined
    && (attachments.inherits || Object.values(attachments.contents).includes('inherited'))
}

/** Returns whether the client did not know the parent of the revision that it wrote. */
function isUnsure({ kind, parent }: Operation): boolean {
  return kind === 'detach' && parent === null
}

function apply(changes: Operation['attachments'], contents: Map<string, ContentName | null>): void {
  const before = new Map(contents)
  if (changes?.inherits !== true) contents.clear()
  for (const [name, content] of Object.entries(changes?.contents ?? {})) {
    if (content === null) contents.delete(name)
    else contents.set(name, content === 'inherited' ? before.get(name) ?? null : content)
  }
}
