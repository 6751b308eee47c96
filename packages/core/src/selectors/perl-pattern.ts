/**
 * Converts patterns of PCRE, in which the clients of CouchDB write `$regex`, to those of JavaScript. What has the same
 * meaning in both is left as it is, and what cannot be converted exactly is refused.
 */

/** A pattern of PCRE that has no exact equivalent. The message names the part. */
export class UnsupportedPattern extends Error {
  override readonly name = 'UnsupportedPattern'
}

/** Parts of a pattern: the longest of those that begin at a place. */
const parts = new RegExp([
  String.raw`\\Q[^]*?(?:\\E|$)`, String.raw`\\x\{[^}]*\}`, String.raw`\\[pP][A-Z]`, String.raw`\\[^]`,
  String.raw`\[:\^?\w+:\]`, String.raw`\[\^?\]?`, String.raw`\]`,
  String.raw`\(\?#[^)\]]*\)`, String.raw`\(\?P[<=>]`, String.raw`\(\?'`, String.raw`\(\?[>|(R&+\d]`,
  String.raw`\(\?-\d`, String.raw`\(\*`, String.raw`\(\?[a-zA-Z-]+\)`,
  String.raw`(?:[*+?]|\{\d+(?:,\d*)?\})[+?]?`, '[^]',
].join('|'), 'g')

/** Escapes of PCRE within and outside of classes, in JavaScript. Those of other letters have one meaning in both. */
const escapes: Readonly<Record<string, string>> = { '\\a': '\\x07', '\\e': '\\x1b' }
/** Escapes that stand for one of several characters: what they are within a class. */
const characterEscapes: Readonly<Record<string, string>> = {
  '\\h': '\\t \\xa0\\u1680\\u180e\\u2000-\\u200a\\u202f\\u205f\\u3000', '\\v': '\\n-\\r\\x85\\u2028\\u2029',
  '\\s': '\\t-\\r ',
}
/** The end of the text, and the place before a last line break. */
export const endAnchor = '(?=\\n?(?![^]))'
/** The beginning and the end of the text, and the end before a last line break, too. */
const anchors: Readonly<Record<string, string>> = {
  '\\A': '(?<![^])', '\\z': '(?![^])', '\\Z': endAnchor,
}
const unsupportedEscapes: Readonly<Record<string, string>> = {
  '\\G': 'the anchor \\G', '\\K': '\\K', '\\R': '\\R (write (?:\\r\\n|\\n|\\r))', '\\X': '\\X', '\\C': '\\C',
  '\\g': 'references with \\g (write \\1 or \\k<name>)', '\\o': 'octal numbers (write \\x)', '\\E': '\\E without \\Q',
  '\\L': '\\L', '\\l': '\\l', '\\U': '\\U', '\\u': '\\u (write \\x{...})',
}
/** Classes within brackets, such as `[:alpha:]`. They contain ASCII characters only. */
const namedClasses: Readonly<Record<string, string>> = {
  alnum: 'A-Za-z0-9', alpha: 'A-Za-z', blank: ' \\t', digit: '0-9', lower: 'a-z', space: ' \\t-\\r',
  graph: '!-~', print: ' -~', punct: '!-\\/:-@\\[-`{-~', upper: 'A-Z', word: '\\w', xdigit: '0-9A-Fa-f',
}

/**
 * @param source as the client wrote it, perhaps with flags at its beginning, such as `(?i)`
 * @returns the source and the flags of a JavaScript pattern; it may still be invalid
 * @throws UnsupportedPattern
 */
export function convertPattern(source: string): { readonly source: string; readonly flags: string } {
  const [leading] = /^(?:\(\?[imsx]+\))*/.exec(source)!
  const flags = new Set(leading.replace(/[(?)]/g, ''))
  const isExtended = flags.delete('x')
  // Groups with flags of their own may change what a dot and a dollar sign mean within them.
  const options = {
    isExtended, plainDot: flags.has('s') || /\(\?\w*-?\w*s\w*:/.test(source),
    plainEnd: flags.has('m') || /\(\?\w*-?\w*m\w*:/.test(source),
  }
  return { source: new PatternConversion(options).convert(source.slice(leading.length)), flags: [...flags].join('') }
}

interface ConversionOptions {
  /** Spaces and comments are left out (`x`). */
  readonly isExtended: boolean
  readonly plainDot: boolean
  readonly plainEnd: boolean
}

class PatternConversion {
  readonly #options: ConversionOptions
  #inClass = false
  #inComment = false

  constructor(options: ConversionOptions) {
    this.#options = options
  }

  convert(source: string): string {
    return source.replace(parts, part => {
      if (this.#inComment) {
        if (part.includes('\n')) this.#inComment = false
        return ''
      }
      if (part.startsWith('\\')) return this.#escape(part)
      return this.#inClass ? this.#ofClass(part) : this.#outside(part)
    })
  }

  #escape(part: string): string {
    if (part.startsWith('\\Q')) return quoted(part.slice(2).replace(/\\E$/, ''))
    if (part.startsWith('\\x{')) return codePoint(part)
    if (/^\\[pP].$/.test(part) && part !== '\\p{' && part !== '\\P{') return `${part.slice(0, 2)}{${part[2]!}}`
    const refused = unsupportedEscapes[part]
    if (refused !== undefined) throw new UnsupportedPattern(`${refused} is not supported`)
    const characters = characterEscapes[part]
    if (characters !== undefined) return this.#inClass ? characters : `[${characters}]`
    if (this.#inClass) return escapes[part] ?? part
    const opposite = characterEscapes[part.toLowerCase()]
    if (opposite !== undefined) return `[^${opposite}]`
    if (part === '\\N') return '[^\\n]'
    // A space that was escaped because of the flag x is a syntax error with the flag u.
    return anchors[part] ?? escapes[part] ?? (part === '\\ ' || part === '\\#' ? part.slice(1) : part)
  }

  #ofClass(part: string): string {
    if (part === ']') {
      this.#inClass = false
      return part
    }
    const name = /^\[:(\^?)(\w+):\]$/.exec(part)
    if (name === null) return part.startsWith('[') ? part.replace('[', '\\[') : part
    if (name[1] === '^') throw new UnsupportedPattern(`the class ${part} is not supported: negate the whole class`)
    if (!Object.hasOwn(namedClasses, name[2]!)) throw new UnsupportedPattern(`there is no class ${part}`)
    return namedClasses[name[2]!]!
  }

  #outside(part: string): string {
    if (part.startsWith('[')) {
      this.#inClass = true
      // A bracket that follows at once belongs to the class.
      return part.endsWith(']') ? part.replace(/\]$/, '\\]') : part
    }
    if (part.startsWith('(')) return group(part)
    if (/^(?:[*+?]|\{\d+(?:,\d*)?\})\+$/.test(part)) {
      throw new UnsupportedPattern(`the possessive quantifier ${part} is not supported: leave out its last +`)
    }
    const { isExtended, plainDot, plainEnd } = this.#options
    if (isExtended && /^\s$/.test(part)) return ''
    if (isExtended && part === '#') {
      this.#inComment = true
      return ''
    }
    if (part === '.' && !plainDot) return '[^\\n]'
    return part === '$' && !plainEnd ? endAnchor : part
  }
}

/** @throws UnsupportedPattern for groups that JavaScript does not have */
function group(part: string): string {
  if (part.startsWith('(?#')) return ''
  switch (part) {
    case '(': return part
    case '(?P<': return '(?<'
    case '(?P=': throw new UnsupportedPattern('the reference (?P=name) is not supported: write \\k<name>')
    case "(?'": throw new UnsupportedPattern("the group (?'name'...) is not supported: write (?<name>...)")
    case '(?>': throw new UnsupportedPattern('atomic groups (?>...) are not supported: write (?:...)')
    case '(?|': throw new UnsupportedPattern('groups (?|...) are not supported')
    case '(?(': throw new UnsupportedPattern('conditions (?(...)...) are not supported')
    case '(*': throw new UnsupportedPattern('verbs such as (*UTF8) are not supported')
    default: break
  }
  if (/^\(\?[a-zA-Z-]+\)$/.test(part)) {
    throw new UnsupportedPattern(
      `${part} is not supported here: flags i, m, s and x stand at the beginning, or i, m and s as in (?i:...)`)
  }
  throw new UnsupportedPattern(`the recursion ${part} is not supported`)
}

/** Returns a pattern of the text itself. */
function quoted(text: string): string {
  // An escaped hyphen is a syntax error with the flag u outside of a class.
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&').replaceAll('-', '\\x2d')
}

/** @param part `\x{...}` */
function codePoint(part: string): string {
  const value = /^\\x\{([0-9a-fA-F]{1,6})\}$/.exec(part)?.[1]
  const code = value === undefined ? Infinity : Number.parseInt(value, 16)
  if (code > 0xffff) throw new UnsupportedPattern(`${part} is not supported: write the character itself`)
  return `\\u${code.toString(16).padStart(4, '0')}`
}
