/** A copy of the checkout in which mutants are applied, so that the checkout itself never contains one. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

const parts = [
  'packages', 'fuzz', 'test-cluster', 'scripts', 'bench', 'docs', 'deploy', 'package.json', 'package-lock.json',
  'tsconfig.json', 'tsconfig.build.json', '.mocharc.json', 'README.md', 'CHANGELOG.md', 'LICENSE', 'docker-compose.yml',
]
const notCopied = new Set(['dist', 'node_modules'])

/** Copies the sources into a new temporary folder. Installed packages are links to those of the checkout. */
export function copyTree(checkout: string): string {
  const copy = mkdtempSync(join(tmpdir(), 'sectional-mutants-'))
  for (const part of parts) {
    cpSync(join(checkout, part), join(copy, part), {
      recursive: true, filter: path => !notCopied.has(basename(path)),
    })
  }
  const installed = join(checkout, 'node_modules')
  mkdirSync(join(copy, 'node_modules', '@sectional'), { recursive: true })
  for (const name of readdirSync(installed)) {
    if (name !== '@sectional') symlinkSync(join(installed, name), join(copy, 'node_modules', name))
  }
  // The links of workspaces are relative, so that they lead to the sources of the copy.
  for (const name of readdirSync(join(installed, '@sectional'))) {
    symlinkSync(readlinkSync(join(installed, '@sectional', name)), join(copy, 'node_modules', '@sectional', name))
  }
  return copy
}

export function removeTree(copy: string): void {
  rmSync(copy, { recursive: true, force: true })
}
