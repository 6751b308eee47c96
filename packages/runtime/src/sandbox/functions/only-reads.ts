/**
 * Tells from its source that a map function cannot change its document, so that the document need not be frozen. To
 * freeze a document of 1 KB takes a quarter of the time in which V8 parses it, and what reads it then is slower, too.
 *
 * The test works on the text and does not parse it, so it says no in case of doubt: for comments and escapes, for words
 * with which objects can be changed, for calls of computed members, and for assignments to anything but variables. Only
 * a source that hides a change on purpose can deceive it; such a function then changes its own copy of the document.
 */
const identifier = '[A-Za-z_$][\\w$]*'
const assignment = '(?:<<|>>>?|\\*\\*|&&|\\|\\||\\?\\?|[-+*/%&|^])=(?!=)|(?<![=!<>])=(?![=>])'
/** What may be before a variable at the start of an expression; a member would have a point there. */
const beforeVariable = '(?<=^\\s*|[;{}(),]\\s*|\\b(?:const|let|var|else|do)\\s+)'

const variableChanges = new RegExp(
  `${beforeVariable}${identifier}\\s*(?:${assignment}|\\+\\+|--)|(?:\\+\\+|--)${identifier}\\b(?!\\s*[.[(?])`, 'g')
const patternDeclarations = /\b(?:const|let|var)\s*[[{][\w$\s,:[\]{}]*[\]}]\s*=(?![=>])/g
const changes = new RegExp(`${assignment}|\\+\\+|--`)
/** A loop whose variable is not declared: it may be a member. */
const openLoops = /\bfor\s*\(\s*(?!(?:const|let|var)\b)[^;)]*\b(?:in|of)\b/
const computedCalls = /[\])]\s*(?:\?\.\s*)?[(`]/
const commentsAndEscapes = /\\|\/[/*]/
const wordsOfChanges = new RegExp(`\\b(?:${[
  'Object(?!\\.(?:keys|values|entries)\\b)', 'Array(?!\\.isArray\\b)', 'Reflect', 'Function', 'Proxy', 'eval',
  'require', 'import', 'globalThis', 'this', 'with', 'class', 'delete', 'call', 'apply', 'bind', 'constructor',
  'prototype', '__\\w+', 'push', 'pop', 'shift', 'unshift', 'splice', 'sort', 'reverse', 'fill', 'copyWithin',
].join('|')})\\b`)
/** Longer sources are not tested, because some tests take a time that is the square of the length. */
const sourceLengthMax = 5000

/** Returns false in case of doubt. */
export function onlyReads(source: string): boolean {
  if (source.length > sourceLengthMax) return false
  const doubts = [commentsAndEscapes, wordsOfChanges, computedCalls, openLoops]
  if (doubts.some(pattern => pattern.test(source))) return false
  return !changes.test(source.replaceAll(patternDeclarations, '').replaceAll(variableChanges, ''))
}
