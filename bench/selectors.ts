// Compares a compiled selector with the same predicate written by hand, over parsed documents of about 1 KB. Parsing is
// in neither. Run: node --conditions=sectional-source bench/selectors.ts
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

function nanosecondsPerFilm(test: (film: Film) => boolean): { readonly ns: number; readonly matches: number } {
  let best = Infinity
  let matches = 0
  for (let round = 0; round < rounds; round++) {
    matches = 0
    const startedAt = process.hrtime.bigint()
    for (const film of films) if (test(film)) matches++
    best = Math.min(best, Number(process.hrtime.bigint() - startedAt))
  }
  return { ns: best / documentCount, matches }
}

for (const { name, selector, byHand } of cases) {
  const parsed = parseSelector(selector)
  const hand = nanosecondsPerFilm(byHand)
  const compiled = nanosecondsPerFilm(compileSelector(parsed))
  const plain = nanosecondsPerFilm(film => matchesSelector(parsed, film))
  if (new Set([hand.matches, compiled.matches, plain.matches]).size !== 1) throw new Error(`${name}: other matches`)
  console.log(`${name}: by hand ${hand.ns.toFixed(0)} ns, compiled ${compiled.ns.toFixed(0)} ns `
    + `(${(hand.ns / compiled.ns).toFixed(2)} of its speed), not compiled ${plain.ns.toFixed(0)} ns`)
}
