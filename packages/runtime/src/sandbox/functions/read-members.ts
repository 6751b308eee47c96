/**
 * Finds from the source of a map function which members of its document it can read, so that the others need not be
 * sent to the function and parsed. A typical map function reads three members.
 *
 * The test works on the text and does not parse it, so it finds nothing in case of doubt: the source must be one
 * function with one parameter, and the parameter may only be used as in `doc.name`. Only a source that hides a use on
 * purpose can deceive it; such a function then misses members of its document.
 */
import { withoutTrailingSemicolons } from './function-source.ts'

/** The beginning of a function with one parameter, up to its body. */
const functionHead = new RegExp(`^\\s*(?:${[
  'function(?:\\s+[A-Za-z_]\\w*)?\\s*\\(\\s*([A-Za-z_]\\w*)\\s*\\)\\s*(?=\\{)',
  '(?:\\(\\s*([A-Za-z_]\\w*)\\s*\\)|([A-Za-z_]\\w*))[\\t ]*=>\\s*',
].join('|')})`)
const textsAndComments = /"(?:[^"\\\n]|\\[^])*"|'(?:[^'\\\n]|\\[^])*'|\/\/.*|\/\*[^]*?\*\//g
/** Templates, regular expressions, and names with escapes or with other letters than those of ASCII. */
const doubtfulCharacters = /["'`/\\]|[^\t\n\r -~]|<!--|-->/
/** Words by which a function may reach its document without its parameter, or change what all objects have. */
const doubtfulWords = new RegExp(`\\b(?:${[
  'arguments', 'caller', 'eval', 'Function', 'require', 'with', 'constructor', 'prototype', '[gs]etPrototypeOf',
  'Reflect', '__\\w+',
].join('|')})\\b`)
/** Longer sources are not tested, because some tests take a time that is the square of the length. */
const sourceLengthMax = 5000
/** A function that reads more members gets all, because each member of a document is compared with all names. */
const namesMax = 32

/** Returns the names of the members, in no order. Undefined: the function may read any member. */
export function readMembers(source: string): readonly string[] | undefined {
  if (source.length > sourceLengthMax) return undefined
  const code = source.replaceAll(textsAndComments, withoutContent)
  if (doubtfulCharacters.test(code) || doubtfulWords.test(code)) return undefined
  const head = functionHead.exec(code)
  if (head === null) return undefined
  const body = withoutTrailingSemicolons(code.slice(head[0].length))
  if (!isOneBody(body)) return undefined
  const parameter = head[1] ?? head[2] ?? head[3]!
  const uses = new RegExp(`(?<![\\w$])${parameter}(?![\\w$])(?:\\s*\\??\\.\\s*([A-Za-z_$][\\w$]*))?`, 'g')
  const names = [...new Set(Array.from(body.matchAll(uses), ([, name]) => name))]
  return names.length <= namesMax && names.every(isMember) ? names : undefined
}

/** A method that every object has, such as `hasOwnProperty`, may read all members. */
function isMember(name: string | undefined): name is string {
  return name !== undefined && !(name in Object.prototype)
}

/** Returns what a text or comment is for the syntax: a value, a space, or a line end, which may end a statement. */
function withoutContent(found: string): string {
  if (!found.startsWith('/')) return ' 0 '
  return /[\n\r\u2028\u2029]/.test(found) ? '\n' : ' '
}

/** Returns whether a text, which contains no texts and comments, is one block or one expression. */
function isOneBody(body: string): boolean {
  const isBlock = body.startsWith('{')
  let depth = 0
  for (let at = 0; at < body.length; at++) {
    const character = body[at]!
    if ('([{'.includes(character)) depth++
    else if (')]}'.includes(character)) {
      if (--depth === 0 && isBlock) return at === body.length - 1
    } else if (depth === 0 && ',;\n\r'.includes(character)) return false
  }
  return !isBlock && depth === 0
}
