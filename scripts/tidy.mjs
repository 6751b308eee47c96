// Holds the house rules that a compiler does not: layers and folders, import cycles, effects outside `runtime`, names,
// sizes, citations. Each is a file in scripts/tidy.
//   node scripts/tidy.mjs   prints the findings, exit status 1 when there are any
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { citationFindings } from './tidy/citations.mjs'
import { cycleFindings } from './tidy/cycles.mjs'
import { effectFindings } from './tidy/effects.mjs'
import { folderFindings } from './tidy/folders.mjs'
import { nameFindings } from './tidy/names.mjs'
import { layerFindings } from './tidy/packages.mjs'
import { sizeFindings } from './tidy/sizes.mjs'
import { isSourcePath, projectFiles, readSource } from './tidy/sources.mjs'

/**
 * @param {string} root top folder of the checkout
 * @returns {string[]} one line per finding
 */
export function tidy(root) {
  const { paths, files, pages } = readProject(root)
  const rules = [
    file => layerFindings(root, file), file => folderFindings(root, file), effectFindings, nameFindings, sizeFindings,
  ]
  return [
    ...files.flatMap(file => rules.flatMap(rule => rule(file))),
    ...cycleFindings(root, files),
    ...citationFindings(paths, files, pages),
  ]
}

function readProject(root) {
  const paths = projectFiles(root)
  const files = paths.filter(isSourcePath).map(path => readSource(root, path))
  const pages = paths.filter(path => path.endsWith('.md'))
    .map(path => ({ path, text: readFileSync(join(root, path), 'utf8') }))
  return { paths, files, pages }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const findings = tidy(root)
  for (const finding of findings) console.log(finding)
  process.exitCode = findings.length > 0 ? 1 : 0
}
