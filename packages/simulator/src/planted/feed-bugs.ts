import { decodeSinceToken, encodeSinceToken } from '@sectional/core'
import type { ChangeRow, ScanChangesRequest, SincePart } from '@sectional/core'
import type { HttpHandler, Runtime } from '@sectional/runtime'
import { everyNth, replicaBug, withChanges } from './planted-bug.ts'
import type { PlantedBug } from './planted-bug.ts'

export const feedBugs: readonly PlantedBug[] = [
  replicaBug({
    name: 'skipped-change',
    does: 'one row in forty of a changes feed is left out',
    caughtBy: ['changes-complete'],
  }, replica => {
    const skips = everyNth(40)
    return {
      scanChanges: (request, context) => {
        const pages = replica.scanChanges(request, context)
        return isOfFeed(request) ? without(pages, skips) : pages
      },
    }
  }),
  replicaBug({
    name: 'change-behind-its-token',
    does: 'the sequence of the last row of a page of changes is one higher than that of its change',
    caughtBy: ['changes-complete'],
  }, replica => ({
    scanChanges: (request, context) => {
      const pages = replica.scanChanges(request, context)
      return isOfFeed(request) ? shifted(pages) : pages
    },
  })),
  {
    name: 'token-of-one-range',
    does: 'a normal feed uses only the first range of a since-token, and starts the others from the beginning',
    caughtBy: ['changes-complete'],
    plant: () => () => ({
      runtime: runtime => withTokens(runtime, (parts, target) =>
        target.includes('feed=normal') ? parts.filter(({ range }) => range.begin === parts[0]?.range.begin) : parts),
    }),
  },
  {
    name: 'token-of-all-ranges',
    does: 'each sequence of a since-token is read as two higher than it is',
    caughtBy: ['changes-complete'],
    plant: () => () => ({
      runtime: runtime => withTokens(runtime, parts => parts.map(part => ({ ...part, sequence: part.sequence + 2 }))),
    }),
  },
  {
    name: 'update-sequence-ahead',
    does: 'the update sequence of a database that GET /{db} shows is one more than that of its last change',
    caughtBy: ['tokens-at-rest'],
    plant: () => () => ({ runtime: runtime => withUpdateSequences(runtime, parts =>
      parts.map(part => ({ ...part, sequence: part.sequence + 1 }))) }),
  },
  {
    name: 'every-node-records',
    does: 'each node that holds a replica records a write for _db_updates',
    caughtBy: ['update-rows'],
    plant: () => () => ({ seams: { control: control => withChanges(control, { connectedNodes: () => [] }) } }),
  },
  replicaBug({
    name: 'lost-wake-up',
    does: 'a reader that waits for changes of a replica is notified of every other change only',
    caughtBy: ['changes-follow', 'converge'],
  }, replica => {
    const sleeps = everyNth(2)
    return {
      waitForChange: async (seen, context) => {
        const reached = await replica.waitForChange(seen, context)
        return sleeps() && reached.history === seen.history ? replica.waitForChange(reached, context) : reached
      },
    }
  }),
]

/** Returns whether the scan belongs to a changes feed; scans of anti-entropy include local documents. */
function isOfFeed({ locals }: ScanChangesRequest): boolean {
  return !locals
}

async function* without(
  pages: AsyncIterable<readonly ChangeRow[]>, skips: () => boolean,
): AsyncGenerator<readonly ChangeRow[]> {
  for await (const rows of pages) yield rows.filter(() => !skips())
}

async function* shifted(pages: AsyncIterable<readonly ChangeRow[]>): AsyncGenerator<readonly ChangeRow[]> {
  for await (const rows of pages) yield rows.map(row => ({ ...row, sequence: row.sequence + 1 }))
}

/** Changes the since-tokens of incoming requests. */
function withTokens(
  runtime: Runtime, change: (parts: readonly SincePart[], target: string) => readonly SincePart[],
): Runtime {
  return withHandler(runtime, handler => exchange => handler(withChanges(exchange, {
    target: exchange.target.replace(/since=([^&]+)/, (text, token: string) => {
      const since = decodeSinceToken(token)
      return since.kind === 'vector' ? `since=${encodeSinceToken(change(since.parts, exchange.target))}` : text
    }),
  })))
}

/** Changes the update sequences in answers to GET /{db}. */
function withUpdateSequences(runtime: Runtime, change: (parts: readonly SincePart[]) => readonly SincePart[]): Runtime {
  const changed = (text: string): string => text.replace(/"update_seq":"([^"]+)"/, (whole, token: string) => {
    const since = decodeSinceToken(token)
    return since.kind === 'vector' ? `"update_seq":"${encodeSinceToken(change(since.parts))}"` : whole
  })
  return withHandler(runtime, handler => exchange => handler(
    exchange.method !== 'GET' || !/^\/[^/?]+$/.test(exchange.target) ? exchange : withChanges(exchange, {
      send: (status, headers, body) => exchange.send(status, headers, changed(Buffer.from(body).toString())),
    }),
  ))
}

function withHandler(runtime: Runtime, change: (handler: HttpHandler) => HttpHandler): Runtime {
  return {
    ...runtime,
    http: withChanges(runtime.http, { listen: (address, handler) => runtime.http.listen(address, change(handler)) }),
  }
}
