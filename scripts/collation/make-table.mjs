// Makes packages/core/src/collation/root-table.json from what icu-root.c prints (README.md beside this file):
//   ./icu-root elements | node scripts/collation/make-table.mjs
// The format is described in packages/core/src/collation/root-table.ts, which reads it.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

const output = fileURLToPath(new URL('../../packages/core/src/collation/root-table.json', import.meta.url))
const commonWeight = 0x500
/** Bits of a tertiary weight that count when neither case nor quaternary weights are compared. */
const tertiaryMask = 0x3f3f
/** Shorter ranges are not worth an entry. */
const rangeLengthMin = 8

const printed = parse(readFileSync(0, 'utf8'))
const ranges = []
const mappings = []
collectCodePoints(printed.codePoints)
mappings.push(...printed.contractions, ...contractionsBeforePrefixed())
const table = gzipSync(Buffer.from(encode()), { level: 9 })
const { icu, unicode, collator } = printed.versions
writeFileSync(output, JSON.stringify({
  about: 'Root collation of Unicode CLDR. Made by scripts/collation/make-table.mjs; do not edit.',
  license: 'Unicode-3.0, Copyright 2016-2025 Unicode, Inc. See packages/core/NOTICE.',
  icu, unicode, collator,
  table: table.toString('base64'),
}, null, 2) + '\n')
console.log(`ICU ${icu}: ${mappings.length} mappings, ${ranges.length} ranges, ${table.length} bytes`)

function parse(text) {
  const found = { versions: {}, compressible: [], classes: [], codePoints: [], contractions: [] }
  for (const line of text.trimEnd().split('\n')) {
    const [kind, first, ...rest] = line.split(' ')
    if (kind === 'compressible') found.compressible.push(parseInt(first, 16))
    else if (kind === 'combining-class') {
      found.classes.push({ codePoint: parseInt(first, 16), leading: Number(rest[0]), trailing: Number(rest[1]) })
    } else if (kind === 'code-point') {
      found.codePoints.push({ codePoint: parseInt(first, 16), elements: parseElements(rest) })
    } else if (kind === 'contraction') {
      const characters = first.split('-').map(digits => parseInt(digits, 16))
      found.contractions.push({ characters, elements: parseElements(rest) })
    } else found.versions[kind] = first
  }
  found.compressible.sort((a, b) => a - b)
  return found
}

/** Elements that no level counts are left out. */
function parseElements(texts) {
  return texts.map(text => {
    const [primary, secondary, tertiary] = text.split('.').map(digits => parseInt(digits, 16))
    return { primary, secondary, tertiary: tertiary & tertiaryMask }
  }).filter(({ primary, secondary, tertiary }) => primary + secondary + tertiary > 0)
}

/**
 * Sorts code points into those whose weights are computed, ranges, and mappings of single code points. The first code
 * point of a contraction always gets a mapping.
 */
function collectCodePoints(codePoints) {
  const starts = new Set(printed.contractions.map(({ characters }) => characters[0]))
  let run = []
  const finishRun = () => {
    if (run.length >= rangeLengthMin) {
      const [{ codePoint, elements: [{ primary }] }] = run
      ranges.push({ start: codePoint, length: run.length, primary, step: stepOf(run) })
    } else for (const { codePoint, elements } of run) mappings.push({ characters: [codePoint], elements })
    run = []
  }
  for (const item of codePoints) {
    const isStart = starts.has(item.codePoint)
    if (isComputed(item) && !isStart) {
      finishRun()
    } else if (!hasCommonElement(item) || isStart) {
      finishRun()
      mappings.push({ characters: [item.codePoint], elements: item.elements })
    } else {
      if (run.length > 0 && !continues(run, item)) finishRun()
      run.push(item)
    }
  }
  finishRun()
}

/**
 * ICU distinguishes contractions from characters whose elements depend on the character before them, such as the
 * middle dot after l. The latter are in the table as contractions as well. So a contraction that ends with the
 * character before needs a longer contraction.
 */
function contractionsBeforePrefixed() {
  const single = new Map(printed.codePoints.map(({ codePoint, elements }) => [codePoint, elements]))
  return printed.contractions.flatMap(({ characters: [before, ...after], elements }) => {
    const start = single.get(before)
    const isPrefixed = start.every((element, i) => lowerOfElement(element) === lowerOfElement(elements[i])
      && element.primary === elements[i].primary)
    if (!isPrefixed) return []
    return printed.contractions.filter(({ characters }) => characters.at(-1) === before).map(longer => ({
      characters: [...longer.characters, ...after],
      elements: [...longer.elements, ...elements.slice(start.length)],
    }))
  })
}

function isComputed({ codePoint, elements }) {
  if (codePoint >= 0xac00 && codePoint < 0xac00 + 11172) return true
  return hasCommonElement({ elements }) && elements[0].primary === unassignedPrimary(codePoint)
}

function hasCommonElement({ elements }) {
  const [element] = elements
  return elements.length === 1 && element.primary > 0
    && element.secondary === commonWeight && element.tertiary === commonWeight
}

function unassignedPrimary(codePoint) {
  const next = codePoint + 1
  const fourth = 2 + next % 18 * 14
  const third = 2 + Math.floor(next / 18) % 254
  const second = 4 + Math.floor(next / 18 / 254) % 251
  return 0xfe000000 + second * 0x10000 + third * 0x100 + fourth
}

function continues(run, item) {
  const last = run.at(-1)
  if (last.codePoint + 1 !== item.codePoint) return false
  const step = ordinal(item) - ordinal(last)
  return step > 0 && step < 256 && (run.length === 1 || step === stepOf(run))
}

function stepOf(run) {
  return run.length === 1 ? 0 : ordinal(run[1]) - ordinal(run[0])
}

/** The position of a primary weight of three bytes among all such weights. */
function ordinal({ elements: [{ primary }] }) {
  const [lead, second, third] = [primary >>> 24, primary >>> 16 & 0xff, primary >>> 8 & 0xff]
  if ((primary & 0xff) !== 0 || third === 0) return NaN
  const [least, count] = printed.compressible.includes(lead) ? [4, 251] : [2, 254]
  return (lead * count + second - least) * 254 + third - 2
}

function encode() {
  const elements = mappings.flatMap(mapping => mapping.elements)
  const primaries = [...new Set(elements.map(element => element.primary))].sort((a, b) => a - b)
  const rankOf = new Map(primaries.map((primary, rank) => [primary, rank]))
  const lowers = lowerWeights(elements)
  const lowerOf = new Map(lowers.map((lower, index) => [lower, index]))
  const { compressible, classes } = printed
  const single = mappings.filter(mapping => mapping.characters.length === 1)
  const contracted = mappings.filter(mapping => mapping.characters.length > 1)
  return bytesOf([
    compressible.length, ...compressible,
    ranges.length, ...gaps(ranges.map(range => range.start)), ...ranges.map(range => range.length),
    ...ranges.map(range => range.primary), ...ranges.map(range => range.step),
    classes.length, ...gaps(classes.map(({ codePoint }) => codePoint)), ...classes.map(({ leading }) => leading),
    ...classes.map(({ trailing }) => trailing),
    primaries.length, ...gaps(primaries),
    lowers.length, ...lowers,
    elements.length, ...signedGaps(elements.map(({ primary }) => rankOf.get(primary))),
    ...elements.map(element => lowerOf.get(lowerOfElement(element))),
    single.length, ...gaps(single.map(({ characters }) => characters[0])),
    ...single.map(mapping => mapping.elements.length),
    contracted.length, ...contracted.flatMap(({ characters, elements }) =>
      [characters.length, ...characters, elements.length]),
  ])
}

function lowerOfElement({ secondary, tertiary }) {
  return secondary * 0x10000 + tertiary
}

/** Secondary and tertiary weights, the most frequent first. */
function lowerWeights(elements) {
  const counts = new Map()
  for (const element of elements) {
    const lower = lowerOfElement(element)
    counts.set(lower, (counts.get(lower) ?? 0) + 1)
  }
  return [...counts].sort((a, b) => b[1] - a[1]).map(([lower]) => lower)
}

function gaps(numbers) {
  return numbers.map((number, index) => index === 0 ? number : number - numbers[index - 1])
}

function signedGaps(numbers) {
  return gaps(numbers).map(gap => gap < 0 ? -2 * gap - 1 : 2 * gap)
}

/** Numbers as groups of seven bits, the lowest first. */
function bytesOf(numbers) {
  const bytes = []
  for (let number of numbers) {
    for (; number >= 0x80; number = Math.floor(number / 0x80)) bytes.push(number % 0x80 + 0x80)
    bytes.push(number)
  }
  return bytes
}
