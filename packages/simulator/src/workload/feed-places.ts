/** The rows and since-tokens that readers of changes feeds have received. */

/** One row of a feed: a document with its leaves, winner first (or only the winner). */
export interface FeedRow {
  readonly id: string
  readonly leaves: readonly string[]
  readonly token: string | null
  /** The value in the body of the winner, if it was shown. */
  readonly value?: string
}

/** A since-token, and everything that the reader had seen when it received it. */
export interface FeedPlace {
  readonly token: string
  readonly database: string
  readonly incarnation: string
  /** The place from which the reader continued; null: the beginning. */
  readonly from: FeedPlace | null
  /** Rows between that place and this one. */
  readonly rows: readonly FeedRow[]
}

/** What a feed sent until it ended or its connection broke. */
export interface FeedAnswer {
  readonly rows: readonly FeedRow[]
  /** The token at the end of the feed; null when the feed was cut off. */
  readonly lastToken: string | null
}

/** @param body body of any kind of feed: JSON, or text whose last line may be cut off */
export function readFeed(body: unknown): FeedAnswer {
  const values = typeof body === 'string' ? body.split('\n').flatMap(lineValue) : [...feedRows(body), body as FeedJson]
  const rows: FeedRow[] = []
  let lastToken: string | null = null
  for (const { seq, id, changes, doc, last_seq: last } of values) {
    if (last !== undefined) lastToken = last
    if (id !== undefined && changes !== undefined) {
      const value = doc?.v
      rows.push({
        id, leaves: changes.map(({ rev }) => rev), token: seq ?? null, ...(value !== undefined && { value }),
      })
    }
  }
  return { rows, lastToken }
}

/** Returns the revisions that a reader has seen on its way to a place, by document. */
export function seenAt(place: FeedPlace | null): Map<string, Set<string>> {
  const seen = new Map<string, Set<string>>()
  for (let at = place; at !== null; at = at.from) {
    for (const { id, leaves } of at.rows) {
      const revisions = seen.get(id) ?? new Set()
      for (const revision of leaves) revisions.add(revision)
      seen.set(id, revisions)
    }
  }
  return seen
}

/** The tokens that readers may use again. Above a limit, some of them are dropped. */
export class FeedPlaces {
  readonly #places = new Map<string, FeedPlace[]>()

  add(place: FeedPlace): void {
    const places = this.#places.get(place.database) ?? []
    this.#places.set(place.database, places)
    places.push(place)
    // Drop the oldest place and the oldest one of the newer half in turn, so that old and new places remain.
    if (places.length > placesMax) places.splice(places.length % 2 === 0 ? 0 : places.length >> 1, 1)
  }

  of(database: string): readonly FeedPlace[] {
    return this.#places.get(database) ?? []
  }
}

interface FeedJson {
  readonly seq?: string | null
  readonly id?: string
  readonly changes?: readonly { readonly rev: string }[]
  readonly doc?: { readonly v?: string } | null
  readonly last_seq?: string
}

const placesMax = 60

function feedRows(body: unknown): readonly FeedJson[] {
  return (body as { readonly results?: readonly FeedJson[] } | undefined)?.results ?? []
}

function lineValue(line: string): FeedJson[] {
  const text = line.replace(/^data: /, '').replace(/,?\r?$/, '')
  try {
    if (text.startsWith('{')) return [JSON.parse(text) as FeedJson]
    return text.startsWith('"last_seq"') ? [JSON.parse(`{${text}`) as FeedJson] : []
  } catch {
    return [] // The line was cut off.
  }
}
