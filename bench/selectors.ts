/**
 * Compares compiled selectors with the same predicates written by hand, on documents of about 1 KB: over parsed
 * documents, and with the parsing of each document, as in a scan. Run `node --conditions=sectional-source
 * bench/selectors.ts`. Prints nanoseconds per document, the best of some rounds.
 *
 * A predicate by hand knows the types of the fields, and it compares texts by their UTF-16 units. V8 compiles it as a
 * whole, which it cannot do with closures that all selectors share. In a scan both are small beside the parsing.
 */
import { compileSelector, type JsonObject, matchesSelector, parseSelector } from '@sectional/core'

interface Film extends JsonObject {
  readonly genre: string
  readonly year: number
  readonly votes: { readonly count: number }
  readonly title: string
  readonly tags: readonly string[]
}

const documentCount = 20_000
const rounds = 15
const genres = ['drama', 'comedy', 'scifi', 'western', 'crime']

const texts = Array.from({ length: documentCount }, (_, at) => JSON.stringify({
  _id: `film-${at}`, _rev: '1-a', genre: genres[at % genres.length], year: 1920 + at % 100, votes: { count: at % 997 },
  title: `${String.fromCharCode(65 + at % 26)} film with the number ${at}`, tags: [`t${at % 7}`, `u${at % 11}`],
  text: 'x'.repeat(700),
  ...Object.fromEntries(Array.from({ length: 10 }, (_unused, index) => [`member${index}`, index])),
}))
const films = texts.map(text => JSON.parse(text) as Film)

interface Case { readonly name: string; readonly selector: unknown; readonly byHand: (film: Film) => boolean }

/** Each predicate in the two forms. */
const cases: readonly Case[] = [
  {
    name: 'five clauses, the last ones decide',
    selector: {
      year: { $gte: 1930 }, 'votes.count': { $lt: 900 }, title: { $gt: 'B' }, genre: { $ne: 'crime' },
      tags: { $in: ['t3'] },
    },
    byHand: film => film.year >= 1930 && film.votes.count < 900 && film.title > 'B' && film.genre !== 'crime'
      && film.tags.includes('t3'),
  },
  {
    name: 'five clauses, the first one decides',
    selector: { genre: 'scifi', year: { $gte: 1930, $lt: 1990 }, 'votes.count': { $lt: 900 }, title: { $regex: '^M' } },
    byHand: film => film.genre === 'scifi' && film.year >= 1930 && film.year < 1990 && film.votes.count < 900
      && film.title.startsWith('M'),
  },
  { name: 'one number', selector: { year: 1999 }, byHand: film => film.year === 1999 },
]

/** Returns the time of a test on one film and the number of matches. */
function measure<Input>(inputs: readonly Input[], test: (input: Input) => boolean): { ns: number; matches: number } {
  let best = Infinity
  let matches = 0
  for (let round = 0; round < rounds; round++) {
    matches = 0
    const startedAt = process.hrtime.bigint()
    for (const input of inputs) if (test(input)) matches++
    best = Math.min(best, Number(process.hrtime.bigint() - startedAt))
  }
  return { ns: best / documentCount, matches }
}

for (const { name, selector, byHand } of cases) {
  const parsed = parseSelector(selector)
  const compiled = compileSelector(parsed)
  const results = {
    'by hand': measure(films, byHand),
    'compiled': measure(films, compiled),
    'not compiled': measure(films, film => matchesSelector(parsed, film)),
    'parsed and by hand': measure(texts, text => byHand(JSON.parse(text) as Film)),
    'parsed and compiled': measure(texts, text => compiled(JSON.parse(text) as Film)),
  }
  const counts = new Set(Object.values(results).map(({ matches }) => matches))
  if (counts.size !== 1) throw new Error(`${name}: different matches`)
  console.log(name)
  for (const [way, { ns }] of Object.entries(results)) console.log(`  ${way}: ${ns.toFixed(0)} ns`)
}
