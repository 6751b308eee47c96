// Just enough lexing of TypeScript for the rules: no parser, no dependency.

/** The code of a text, see `scan`. */
export function blank(text) {
  return scan(text).code
}

/**
 * Separates code from comments.
 *
 * @returns `code`: the text with comments, strings, template texts and regular expressions blanked out (same length,
 * same lines; quotes stay, so that an import statement can still be found). `comments`: the text of all comments, with
 * everything else blanked out (same lines).
 */
export function scan(text) {
  const out = text.split('')
  const spans = []
  const erase = (from, to) => { for (let i = from; i < to; i++) if (out[i] !== '\n') out[i] = ' ' }
  // One entry per open template: the depth of braces inside its current ${...}.
  const templates = []
  let last = ''
  let word = ''
  let i = 0
  while (i < text.length) {
    const c = text[i]
    const two = text.slice(i, i + 2)
    let end = i + 1
    if (two === '//' || two === '/*') {
      end = two === '//' ? indexOrEnd(text, '\n', i) : indexOrEnd(text, '*/', i + 2) + 2
      spans.push([i, end])
      erase(i, end)
      i = end
      continue
    }
    if (c === "'" || c === '"') { end = stringEnd(text, i); erase(i + 1, end - 1) }
    else if (c === '`' || (c === '}' && templates.at(-1) === 0)) {
      if (c === '}') templates.pop()
      end = templateEnd(text, i + 1)
      const opens = text.slice(end - 2, end) === '${'
      erase(i + 1, opens ? end - 2 : end - 1)
      if (opens) templates.push(0)
      // Braces of the template itself must not count as blocks.
      if (c === '}') out[i] = ' '
      if (opens) { out[end - 1] = ' '; out[end - 2] = ' ' }
      last = opens ? '(' : '`'
      word = ''
      i = end
      continue
    }
    else if (c === '/' && startsRegex(last, word)) { end = regexEnd(text, i); erase(i, end) }
    else if (c === '{' && templates.length > 0) templates[templates.length - 1]++
    else if (c === '}' && templates.length > 0) templates[templates.length - 1]--
    if (/\s/.test(c)) { i = end; continue }
    if (/[\w$]/.test(c)) word = /[\w$]/.test(text[i - 1] ?? '') ? word + c : c
    else word = ''
    last = c
    i = end
  }
  return { code: out.join(''), comments: only(text, spans) }
}

/** The text inside the spans, everything else blanked out. */
function only(text, spans) {
  let comments = ''
  let done = 0
  for (const [from, to] of spans) {
    comments += text.slice(done, from).replace(/[^\n]/g, ' ') + text.slice(from, to)
    done = to
  }
  return comments
}

function indexOrEnd(text, needle, from) {
  const at = text.indexOf(needle, from)
  return at < 0 ? text.length : at
}

function stringEnd(text, start) {
  let i = start + 1
  while (i < text.length && text[i] !== text[start] && text[i] !== '\n') i += text[i] === '\\' ? 2 : 1
  return i + 1
}

/** Behind the closing backquote or behind the next `${`. */
function templateEnd(text, from) {
  let i = from
  while (i < text.length) {
    if (text[i] === '\\') i += 2
    else if (text[i] === '`') return i + 1
    else if (text[i] === '$' && text[i + 1] === '{') return i + 2
    else i++
  }
  return i
}

function startsRegex(last, word) {
  if (word) return /^(return|typeof|case|in|of|delete|void|throw|await|yield)$/.test(word)
  return last === '' || !/[)\]}`'"]/.test(last)
}

function regexEnd(text, start) {
  let inClass = false
  let i = start + 1
  for (; i < text.length && text[i] !== '\n'; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === '[') inClass = true
    else if (text[i] === ']') inClass = false
    else if (text[i] === '/' && !inClass) { i++; break }
  }
  while (/[a-z]/.test(text[i] ?? '')) i++
  return i
}

/** Functions with a block body: name (or line for nameless ones) and length in lines. */
export function functions(code) {
  const found = []
  const opens = []
  let line = 1
  for (let i = 0; i < code.length; i++) {
    if (code[i] === '\n') line++
    else if (code[i] === '{') opens.push({ name: functionName(code, i), line, start: i })
    else if (code[i] === '}') {
      const open = opens.pop()
      if (open?.name !== undefined) found.push({ name: open.name, line: open.line, lines: line - open.line + 1 })
    }
  }
  return found
}

const controlWords = new Set(['if', 'for', 'while', 'switch', 'catch', 'with'])

/** The function's name when the brace at `at` opens a body, else undefined. */
function functionName(code, at) {
  const before = withoutReturnType(code.slice(Math.max(0, at - 2000), at).trimEnd())
  if (before === undefined) return undefined
  const open = matchingParenthesis(before)
  if (open < 0) return undefined
  const head = before.slice(0, open).trimEnd().replace(/<[^<>()]*>$/, '').trimEnd()
  const name = /([\w$#]+)$/.exec(head)?.[1] ?? ''
  if (controlWords.has(name)) return undefined
  if (name && name !== 'function' && name !== 'async') return name
  return /([\w$]+)\s*(:[^=\n]*)?=\s*(async\s*)?(function\s*)?$/.exec(head)?.[1] ?? 'anonymous'
}

/** Text up to the closing parenthesis of the parameters, or undefined when the brace opens something else. */
function withoutReturnType(before) {
  let text = before
  const arrow = text.endsWith('=>')
  if (arrow) text = text.slice(0, -2).trimEnd()
  // Object types inside a return type hide its beginning.
  for (let previous = ''; previous !== text;) {
    previous = text
    text = text.replace(/(\)\s*:[^;\n]*)\{[^{}\n]*\}([^{};\n]*)$/, '$1Type$2')
  }
  const match = /\)(\s*:[^;={}]*[\w\])>'"])?$/.exec(text)
  if (match) return text.slice(0, match.index + 1)
  // `name => {`
  return arrow && /[\w$]$/.test(text) ? `${text.replace(/[\w$]+$/, '')}()` : undefined
}

function matchingParenthesis(text) {
  let depth = 0
  for (let i = text.length - 1; i >= 0; i--) {
    if (text[i] === ')') depth++
    else if (text[i] === '(' && --depth === 0) return i
  }
  return -1
}
