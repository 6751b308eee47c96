// Checks which package imports which, and that no file imports what lies behind another package's index.
import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { exportedFile } from './sources.mjs'

/** What each package may import of the others (docs/architecture.md#packages). */
export const layers = {
  core: [],
  runtime: ['core'],
  shard: ['core', 'runtime'],
  rpc: ['core', 'runtime'],
  cluster: ['core', 'runtime'],
  http: ['core', 'runtime', 'cluster'],
  replicator: ['core', 'runtime', 'cluster'],
  server: ['core', 'runtime', 'shard', 'rpc', 'cluster', 'http', 'replicator'],
  simulator: ['core', 'runtime', 'server'],
}

const simulatorParts = new Set(['@sectional/simulator/scenarios', '@sectional/simulator/history'])

export function layerFindings(root, file) {
  if (!file.packageName) {
    // test-cluster knows nodes by HTTP only, plays the simulator's scenarios, and judges its histories with the
    // simulator's rules; bench and scripts may measure parts.
    if (!file.path.startsWith('test-cluster/')) return []
    return file.imports.map(({ specifier }) => specifier)
      .filter(name => name.startsWith('@sectional/') && !simulatorParts.has(name))
      .map(name => `${file.path}: imports ${name}; it may only speak to nodes by HTTP`)
  }
  const allowed = layers[file.packageName]
  if (!allowed) return [`${file.path}: package ${file.packageName} is not in the table of scripts/tidy/packages.mjs`]
  const findings = []
  const declared = dependenciesOf(root, file)
  for (const { specifier } of file.imports) {
    if (specifier.startsWith('.')) {
      const target = relative(root, join(root, dirname(file.path), specifier))
      const isInside = target.startsWith(`packages/${file.packageName}/`)
      const isScript = target.startsWith('scripts/') && !file.isSource
      if (isInside || isScript) continue
      findings.push(`${file.path}: ${specifier} leaves the package; import it by its package name`)
    } else if (specifier.startsWith('@sectional/')) {
      const [, target, ...rest] = specifier.split('/')
      if (target !== file.packageName && !allowed.includes(target)) {
        findings.push(`${file.path}: package ${file.packageName} may not import ${target} (docs/architecture.md)`)
      }
      if (rest.length > 0 && exportedFile(root, specifier) === undefined) {
        findings.push(`${file.path}: ${specifier} reaches behind the package's index`)
      }
    } else if (!specifier.startsWith('node:') && !declared.has(packageNameOf(specifier))) {
      findings.push(`${file.path}: ${packageNameOf(specifier)} is not a dependency of the package`)
    }
  }
  return findings
}

function packageNameOf(specifier) {
  return specifier.split('/').slice(0, specifier.startsWith('@') ? 2 : 1).join('/')
}

function dependenciesOf(root, file) {
  const manifest = manifestAt(join(root, 'packages', file.packageName))
  const development = file.isSource ? {} : { ...manifest.devDependencies, ...manifestAt(root).devDependencies }
  return new Set(Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies, ...development }))
}

function manifestAt(folder) {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
}
