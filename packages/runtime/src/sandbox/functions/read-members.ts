/**
 * Finds from the source of a map function which members of its document it can read, so that the others need not be
 * sent to the function and parsed. A typical map function reads three members.
 *
 * The test works on the text and does not parse it, so it finds nothing in case of doubt: the source must be one
 * function with one parameter, which is a pattern of members (`({ name }) => ...`), or may only be used as in
 * `doc.name`, `(doc && ...)` and `const { name } = doc`. Only a source that hides a use on purpose can deceive it; such
 * a function then misses members of its document.
 */
import { withoutTrailingSemicolons } from './function-source.ts'

/** A pattern of members, some of which may be renamed. Others, such as nested ones, are doubtful. */
const pattern = '\\{[\\w$\\s,:]*\\}'
const parameter = `[A-Za-z_]\\w*|${pattern}`
/** The beginning of a function with one parameter, up to its body. */
const functionHead = new RegExp(`^\\s*(?:${[
  `function(?:\\s+[A-Za-z_]\\w*)?\\s*\\(\\s*(${parameter})\\s*\\)\\s*(?=\\{)`,
  `(?:\\(\\s*(${parameter})\\s*\\)|([A-Za-z_]\\w*))[\\t ]*=>\\s*`,
].join('|')})`)
const patternMember = /^\s*([A-Za-z_$][\w$]*)\s*(?::\s*[A-Za-z_$][\w$]*\s*)?$/
const textsAndComments = /"(?:[^"\\\n]|\\[^])*"|'(?:[^'\\\n]|\\[^])*'|\/\/.*|\/\*[^]*?\*\//g
/** Templates, regular expressions, and names with escapes or with other letters than those of ASCII. */
const doubtfulCharacters = /["'`/\\]|[^\t\n\r -~]|<!--|-->/
/** Words by which a function may reach its document without its parameter, or change what all objects have. */
const doubtfulWords = new RegExp(`\\b(?:${[
  'arguments', 'caller', 'eval', 'Function', 'require', 'with', 'constructor', 'prototype', '[gs]etPrototypeOf',
  'Reflect', '__\\w+',
].join('|')})\\b`)
/** A semicolon, or a line end before a word that cannot continue an expression. */
const statementEnd = '(?:;|[\\n\\r]\\s*(?=(?!in\\b|instanceof\\b)[A-Za-z_$}]))'
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
  const names = [...namesReadBy(body, head[1] ?? head[2] ?? head[3]!)]
  return names.length <= namesMax && names.every(isMember) ? names : undefined
}

/** Returns the names of members, and undefined among them where others may be read. */
function namesReadBy(body: string, documentName: string): ReadonlySet<string | undefined> {
  if (documentName.startsWith('{')) return new Set(namesOf(documentName))
  const patterns = new RegExp(
    `(?<![\\w$.])(?:const|let|var)\\s*(${pattern})\\s*=\\s*${documentName}[\\t ]*${statementEnd}`, 'g')
  const names = Array.from(body.matchAll(patterns), ([, found]) => namesOf(found!)).flat()
  // The value of `doc && other` is the other one, since the document is an object.
  const rest = body.replaceAll(patterns, ';').replaceAll(new RegExp(`\\(\\s*${documentName}\\s*&&`, 'g'), '(')
  const uses = new RegExp(`(?<![\\w$])${documentName}(?![\\w$])(?:\\s*\\??\\.\\s*([A-Za-z_$][\\w$]*))?`, 'g')
  return new Set([...names, ...Array.from(rest.matchAll(uses), ([, name]) => name)])
}

/** Returns the names of the members in a pattern; undefined for what may be something else. */
function namesOf(text: string): readonly (string | undefined)[] {
  const members = text.slice(1, -1).split(',')
  if (members.at(-1)!.trim() === '') members.pop()
  return members.map(member => patternMember.exec(member)?.[1])
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
