/** Documents as map functions see them, and the rows that these emit. */
import {
  type AttachmentRecord, type ChangeRow, encodeViewRow, type IndexDefinition, type Leaf, partitionPrefix,
  SortKeyEncoder, spliceDocument,
} from '@sectional/core'
import {
  documentRowsMax, type EmittedRow, failureText, type JsonText, type MapOutcome, SandboxError,
} from '@sectional/runtime'
import type { MappedDocument, MappedRow } from '../indexer.ts'
import { checkEmitted, readEmitted } from './long-json.ts'

/** The order of values in rows with equal keys. */
const valueOrder = new SortKeyEncoder('raw')
/**
 * Bytes of the sort keys of the rows of one document, which are written together. The key of an array of numbers has up
 * to seven times the length of its JSON in the store.
 */
const documentKeyBytesMax = 4 * 1024 * 1024
/** Is greater than every sort key. */
const aboveKeys = '\u00ff'
/** Number of rows that are made without a pause, and bytes of a sort key after which there is one in any case. */
const rowsAtOnce = 16
const longKeyBytes = 16 * 1024
/** UTF-16 units of the JSON of a key. A longer one has a sort key of more than the 1 MiB that these may have. */
const keyLengthMax = 4 * 1024 * 1024

/** A row that is being sorted. `order` is computed only when two rows of the document have equal keys. */
interface OrderedRow { readonly row: MappedRow; readonly json: string; order: string }

/**
 * Returns whether the index contains a document: design documents only with the option `include_design`, and in an
 * index that is ordered by partition, never.
 */
export function isMapped({ options }: IndexDefinition, { id }: ChangeRow): boolean {
  return !id.startsWith('_design/') || (options['include_design'] === true && options['partitioned'] !== true)
}

/**
 * Returns the JSON of a document that is not deleted: the members of its winner, and behind them `_local_seq` (with the
 * option of that name), `_conflicts`, `_deleted_conflicts` and `_attachments` with stubs, where there are some.
 *
 * @param members those of the winner's members that are wanted, as JSON text without braces; undefined: all
 */
export function mapArgument({ options }: IndexDefinition, row: ChangeRow, members?: string): JsonText {
  const { id, leaves, body, attachments } = row
  const { revision } = leaves[0]!
  const isPlain = leaves.length === 1 && attachments === undefined && options['local_seq'] !== true
  const extra = isPlain ? '' : furtherMembers(options, row)
  if (members === undefined) return spliceDocument({ id, revision, body: body!, extra })
  const further = (members && `,${members}`) + (extra && `,${extra}`)
  return `{"_id":${JSON.stringify(id)},"_rev":${JSON.stringify(revision)}${further}}`
}

function furtherMembers(
  options: IndexDefinition['options'], { sequence, leaves, attachments = [] }: ChangeRow,
): string {
  return [
    ...options['local_seq'] === true ? [`"_local_seq":${sequence}`] : [],
    ...losers('_conflicts', leaves, false), ...losers('_deleted_conflicts', leaves, true),
    ...attachments.length === 0 ? [] : [`"_attachments":{${attachments.map(stub).join()}}`],
  ].join()
}

function losers(name: string, leaves: readonly Leaf[], deleted: boolean): readonly string[] {
  if (leaves.length < 2) return []
  const revisions = leaves.slice(1).filter(leaf => leaf.deleted === deleted).map(({ revision }) => revision)
  return revisions.length === 0 ? [] : [`"${name}":${JSON.stringify(revisions)}`]
}

function stub({ name, contentType, revpos, digest, length }: AttachmentRecord): string {
  const shown = { content_type: contentType, revpos, digest: `md5-${digest}`, length, stub: true }
  return `${JSON.stringify(name)}:${JSON.stringify(shown)}`
}

/**
 * Returns the rows of a document with their sort keys, or why it has none. Rows with equal keys have the order of their
 * values, as in CouchDB: numbers, false, null, true, objects, arrays, strings by their bytes.
 *
 * @param encoder makes the sort keys of the index
 * @returns a generator for `Turns.run`, because a document may have many rows, and long ones
 */
export function* mappedDocument(
  { options }: IndexDefinition, id: string, outcome: MapOutcome | SandboxError, encoder: SortKeyEncoder,
): Generator<void, MappedDocument> {
  if (outcome instanceof SandboxError) return { error: outcome.message, exceededLimits: true }
  if (outcome.kind === 'thrown') return { error: `The map function threw ${outcome.json}` }
  if (outcome.kind === 'error') return { error: failureText(outcome.message, outcome) }
  if (outcome.kind === 'tooManyRows') {
    return { error: `The map function emitted ${outcome.count} rows; the limit is ${documentRowsMax}` }
  }
  const prefix = options['partitioned'] === true ? partitionPrefix(id.slice(0, id.indexOf(':'))) : ''
  try {
    return { rows: yield* mappedRows(outcome.rows, prefix, encoder) }
  } catch (error) {
    return { error: `A row cannot be indexed: ${(error as Error).message}` }
  }
}

/**
 * @throws ApiError for a key that is too long or nested too deep; SyntaxError or ApiError for a key or value that a
 * hostile function made
 */
function* mappedRows(
  emitted: readonly EmittedRow[], prefix: string, encoder: SortKeyEncoder,
): Generator<void, readonly MappedRow[]> {
  if (emitted.length === 1) return [yield* mappedRow(emitted[0]!, prefix, encoder)]
  const rows: OrderedRow[] = []
  let keyBytes = 0
  for (const each of emitted) {
    const row = yield* mappedRow(each, prefix, encoder)
    keyBytes += row.key.length
    if (keyBytes > documentKeyBytesMax) {
      throw new RangeError(`the sort keys of the document have more than ${documentKeyBytesMax} bytes`)
    }
    rows.push({ row, json: each.value, order: '' })
    if (rows.length % rowsAtOnce === 0 || row.key.length > longKeyBytes) yield
  }
  rows.sort((a, b) => compareTexts(a.row.key, b.row.key))
  if (rows.some(({ row }, at) => row.key === rows[at - 1]?.row.key)) {
    for (const [at, each] of rows.entries()) {
      each.order = yield* valueKey(each.json)
      if (at % rowsAtOnce === 0) yield
    }
    rows.sort((a, b) => compareTexts(a.row.key, b.row.key) || compareTexts(a.order, b.order))
  }
  return rows.map(({ row }) => row)
}

function* mappedRow({ key, value }: EmittedRow, prefix: string, encoder: SortKeyEncoder): Generator<void, MappedRow> {
  yield* checkEmitted(value)
  if (key.length > keyLengthMax) {
    throw new RangeError(`the JSON of the key has ${key.length} characters; the limit is ${keyLengthMax}`)
  }
  return { key: prefix + encoder.encode(yield* readEmitted(key)), value: encodeViewRow(key, value) }
}

/** Returns a text by which values are ordered. Values that are too long for a sort key come last. */
function* valueKey(json: string): Generator<void, string> {
  if (json.length > keyLengthMax) return aboveKeys + json
  const value = yield* readEmitted(json)
  try {
    return valueOrder.encode(value)
  } catch {
    return aboveKeys + json
  }
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
