import type { Finding } from './finding.ts'
import type { LocalRead, LocalWrite } from './recorded-history.ts'

/**
 * A local document shows the content of a write that may have taken effect. A fresh read shows none that was replaced:
 * of writes that were acknowledged with 201 one after the other, the last one wins. A write below w, or of which the
 * outcome is unknown, may win at any later time.
 */
export function localDocuments(
  document: string, writes: readonly LocalWrite[], reads: readonly LocalRead[],
): Finding[] {
  return reads.flatMap(read => {
    const { content, endMs, fresh, label, startMs } = read
    const makers = writes.filter(write =>
      write.content === content && write.outcome !== 'refused' && write.startMs <= endMs)
    const what = `${label} of ${document} showed ${content ?? 'nothing'}`
    if (makers.length === 0 && content !== null) {
      return [{ rule: 'local-documents', text: `${what}, which no write has stored` }]
    }
    if (!fresh) return []
    const successors = [
      ...makers.map(({ outcome, endMs: madeMs }) =>
        outcome === 'done' ? successor(madeMs, startMs, writes) : undefined),
      // Before the first write there is nothing to show.
      ...content === null ? [successor(-Infinity, startMs, writes)] : [],
    ]
    const [later] = successors
    return later === undefined || successors.includes(undefined)
      ? []
      : [{ rule: 'local-documents', text: `${what} and did not see ${later.label}` }]
  })
}

/** Returns an acknowledged write that began after the one time and ended before the other. */
function successor(afterMs: number, beforeMs: number, writes: readonly LocalWrite[]): LocalWrite | undefined {
  return writes.find(({ outcome, startMs, endMs }) => outcome === 'done' && startMs >= afterMs && endMs <= beforeMs)
}
