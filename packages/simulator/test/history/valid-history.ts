/** Histories of a store that keeps every promise: one operation after the other on each document, in random order. */
import { Dice } from '../../src/world/dice.ts'
import type { Edit, LocalRead, LocalWrite, Read, RecordedHistory } from '../../src/history/index.ts'
import { listReads } from '../../src/history/index.ts'

const contents = ['a', 'b', 'c']
const documents = ['db/x', 'db/y', 'db/z']

interface State { readonly revisions: readonly string[]; readonly deleted: boolean; readonly content: string }

/** Returns the revision that an edit makes: equal for equal parents and contents. */
export function revisionOf(parent: string | null, content: string, deleted: boolean): string {
  const generation = parent === null ? 1 : Number(parent.split('-')[0]) + 1
  const text = `${parent} ${content} ${deleted}`
  let hash = 0
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return `${generation}-${(hash >>> 0).toString(16).padStart(32, '0')}`
}

/** Draws operations of several clients whose requests overlap. Each takes effect at one moment between its ends. */
export function validHistory(seed: number, operations = 200): RecordedHistory {
  const dice = new Dice(seed)
  const states = new Map<string, State>()
  const edits: Edit[] = []
  const reads: Read[] = []
  const localWrites: LocalWrite[] = []
  const localReads: LocalRead[] = []
  let local: string | null = null
  const revisionAt = (document: string): string | null => {
    const state = states.get(document)
    return state === undefined || state.deleted ? null : state.revisions[0]!
  }
  for (let number = 0; number < operations; number++) {
    const document = dice.pick(documents)
    const label = `#${number}`
    const times = { startMs: number * 10 - dice.integer(0, 30), endMs: number * 10 + dice.integer(0, 30) }
    const state = states.get(document)
    const kind = dice.weighted({ write: 10, read: 4, list: 2, localWrite: 2, localRead: 2 })
    if (kind === 'write') {
      const wanted = dice.chance(0.7) ? revisionAt(document) : dice.pick([null, ...state?.revisions ?? []])
      const deleted = wanted !== null && dice.chance(0.15)
      const content = deleted ? '' : dice.pick(contents)
      const fits = wanted === revisionAt(document) || wanted === state?.revisions[0]
      const outcome = fits ? dice.pick(['done', 'done', 'accepted', 'unknown'] as const) : 'conflict'
      const revision = revisionOf(wanted ?? state?.revisions[0] ?? null, content, deleted)
      edits.push({
        label, document, ...times, endMs: outcome === 'unknown' ? Infinity : times.endMs, outcome, parent: wanted,
        content, deleted, exclusive: true, kept: true, copies: 2,
        ...(outcome === 'done' || outcome === 'accepted' ? { revision } : {}),
      })
      const takesEffect = fits && (outcome !== 'unknown' || dice.chance(0.5))
      if (takesEffect) states.set(document, { revisions: [revision, ...state?.revisions ?? []], deleted, content })
    } else if (kind === 'read') {
      const revision = revisionAt(document)
      reads.push({
        label, document, ...times, revision, freshSinceMs: times.startMs,
        ...(revision !== null && { content: state!.content }),
      })
    } else if (kind === 'list') {
      const rows = documents.flatMap(each => revisionAt(each) === null
        ? [] : [{ document: each, revision: revisionAt(each), content: states.get(each)!.content }])
      reads.push(...listReads({ label, ...times, rows, freshSinceMs: times.startMs }, documents))
    } else if (kind === 'localWrite') {
      const content = dice.pick([...contents, null])
      localWrites.push({ label, document: 'db/_local/x', ...times, outcome: 'done', content })
      local = content
    } else {
      localReads.push({ label, document: 'db/_local/x', ...times, content: local, fresh: true })
    }
  }
  const finals = new Map([...states].map(([document, { revisions, deleted, content }]) =>
    [document, { branches: [{ revisions, deleted, content }] }]))
  return { edits, reads, localWrites, localReads, finals }
}
