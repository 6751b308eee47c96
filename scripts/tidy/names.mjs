// Names: of files after the concept that they hold, of private members with #, of constants in camelCase.
import { lineAt } from './sources.mjs'

const bannedFileNames = /^(utils?|helpers?|common|types|misc|shared)(\.test)?\.(ts|mjs)$/
/** A constructor can be hidden in no other way. */
const privateKeyword = /^\s+private (?!constructor\b)/gm
const upperCaseConstant = /^\s*(export )?(static readonly|const) [A-Z][A-Z0-9_]+\s*[:=]/gm

export function nameFindings({ path, code, isSource }) {
  const findings = bannedFileNames.test(path.split('/').at(-1)) ? [`${path}: name the file after its concept`] : []
  if (!isSource) return findings
  const found = (pattern, advice) => [...code.matchAll(pattern)].map(({ 0: text, index }) =>
    `${path}:${lineAt(code, index + text.search(/\S/))}: ${advice}`)
  return [
    ...findings,
    ...found(privateKeyword, 'hide the member by a name with #'),
    ...found(upperCaseConstant, 'name the constant in camelCase'),
  ]
}
