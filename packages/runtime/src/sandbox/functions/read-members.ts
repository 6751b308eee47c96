/**
 * Finds from the source of a map function which members of its document it can read, so that the others need not be
 * sent to the function and parsed. A typical map function reads three members.
 *
 * The test works on the text and does not parse it, so it finds nothing in case of doubt: the source must be one
 * function with one parameter, and the parameter may only be used as in `doc.name`. Only a source that hides a use on
 * purpose can deceive it; such a function then misses members of its document.
 */

/** The beginning of a function with one parameter, up to its body. */
const functionHead = new RegExp(`^\\s*(?:${[
  'function(?:\\s+[A-Za-z_]\\w*)?\\s*\\(\\s*([A-Za-z_]\\w*)\\s*\\)\\s*(?=\\{)',
  '(?:\\(\\s*([A-Za-z_]\\w*)\\s*\\)|([A-Za-z_]\\w*))[\\t ]*=>\\s*',
].join('|')})`)
const textsAndComments = /"(?:[^"\\\n]|\\[^])*"|'(?:[^'\\\n]|\\[^])*'|\/\/.*|\/\*[^]*?\*\//g
/** Templates, regular expressions, and names with escapes or with other letters than those of ASCII. */
const doubtfulCharacters = /["'`/\\]|[^\t\n\r -~]|<!--|-->/
/** Words by which a function may reach its document without its parameter, or change what all objects have. */
const doubtfulWords = /\b(?:arguments|caller|eval|Function|with|constructor|prototype|Reflect|__\w+)\b/
/** Longer sources are not tested, because some tests take a time that is the square of the length. */
const sourceLengthMax = 5000

/** Returns the names of the members, in no order. Undefined: the function may read any member. */
export function readMembers(source: string): readonly string[] | undefined {
  if (source.length > sourceLengthMax) return undefined
  const code = source.replaceAll(textsAndComments, found => found.startsWith('/') ? ' ' : ' 0 ')
  if (doubtfulCharacters.test(code) || doubtfulWords.test(code)) return undefined
  const head = functionHead.exec(code)
  if (head === null) return undefined
  const body = code.slice(head[0].length).replace(/[\s;]+$/, '')
  if (!isOneBody(body)) return undefined
  const parameter = head[1] ?? head[2] ?? head[3]!
  const uses = new RegExp(`(?<![\\w$])${parameter}(?![\\w$])(?:\\s*\\??\\.\\s*([A-Za-z_$][\\w$]*))?`, 'g')
  const names = Array.from(body.matchAll(uses), ([, name]) => name)
  // A method that every object has, such as `hasOwnProperty`, may read all members.
  const areMembers = names.every(name => name !== undefined && !(name in Object.prototype))
  return areMembers ? [...new Set(names as string[])] : undefined
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
