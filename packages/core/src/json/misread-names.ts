/**
 * Finds texts and values in which JSON.parse may have read a member's name as another one.
 *
 * * This works around a defect of V8 (in all versions of Node.js 24). V8 compares a name that has escapes with the name
 * that followed the same members in an earlier text, and it compares the bytes as they are written, as many as the name
 * has characters. So once any text had `{"a":1,"\\":2}`, the name in `{"a":1,"\n":2}` becomes a backslash. See
 * https://github.com/nodejs/node/issues/63785. A misread name always contains a backslash: that of the escape.
 */

/**
 * Whether names of the value may differ from those of the text. This is hardly ever true.
 *
 * @param value the value that JSON.parse made of the text
 */
export function mayBeMisread(text: string, value: unknown): boolean {
  return hasEscapedName(text) && hasBackslashName(value)
}

/** Whether a member's name has an escape. @param text valid JSON, so that backslashes occur in strings only */
export function hasEscapedName(text: string): boolean {
  for (let at = text.indexOf('\\'); at >= 0; at = text.indexOf('\\', at)) {
    while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
    do at++; while (text[at] === ' ' || text[at] === '\n' || text[at] === '\r' || text[at] === '\t')
    if (text[at] === ':') return true
  }
  return false
}

function hasBackslashName(value: unknown): boolean {
  const waiting = [value]
  while (waiting.length > 0) {
    const next = waiting.pop()
    if (typeof next !== 'object' || next === null) continue
    if (!Array.isArray(next) && Object.keys(next).some(name => name.includes('\\'))) return true
    for (const each of Object.values(next)) waiting.push(each)
  }
  return false
}
