// Finds import cycles between files. Imports of types count, too.
import { resolveImport } from './sources.mjs'

/** Strongly connected components of the file graph, types included (Tarjan 1972). */
export function cycleFindings(root, files) {
  const known = new Map(files.map(file => [file.path, file]))
  const targets = file => file.imports.map(({ specifier }) => resolveImport(root, file, specifier))
    .filter(path => path !== undefined && known.has(path))
  const indexes = new Map()
  const low = new Map()
  const stack = []
  const findings = []
  const visit = file => {
    indexes.set(file.path, indexes.size)
    low.set(file.path, indexes.get(file.path))
    stack.push(file.path)
    for (const path of targets(file)) {
      if (!indexes.has(path)) visit(known.get(path))
      if (stack.includes(path)) low.set(file.path, Math.min(low.get(file.path), low.get(path)))
    }
    if (low.get(file.path) !== indexes.get(file.path)) return
    const component = stack.splice(stack.indexOf(file.path))
    const isCycle = component.length > 1 || targets(file).includes(file.path)
    if (isCycle) findings.push(`import cycle: ${component.join(' -> ')}`)
  }
  for (const file of files) if (!indexes.has(file.path)) visit(file)
  return findings
}
