// Limits of the lengths of files, functions and lines. There are no exceptions.
import { functions } from './scanner.mjs'

const fileLinesMax = 600
const functionLinesMax = 70
const columnsMax = 120

/** @returns {string[]} one line per file, function or line that is too long */
export function sizeFindings({ path, text, code, isSource }) {
  const lines = text.split('\n')
  const measured = [
    { where: path, size: lines.length - 1, max: fileLinesMax, unit: 'lines', advice: 'find the better cut' },
    ...(isSource ? functions(code) : []).map(({ name, lines: size }) => (
      { where: `${path}#${name}`, size, max: functionLinesMax, unit: 'lines', advice: 'find the better cut' }
    )),
    ...lines.map(({ length: size }, index) => (
      { where: `${path}:${index + 1}`, size, max: columnsMax, unit: 'columns', advice: 'break the line' }
    )),
  ]
  return measured.filter(({ size, max }) => size > max)
    .map(({ where, size, max, unit, advice }) => `${where}: ${size} ${unit}, the limit is ${max}; ${advice}`)
}
