/** Files that ship with this package; they have the same paths from src and from dist. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const packageFolder = new URL('../../', import.meta.url)

export const defaultIniPath = fileURLToPath(new URL('default.ini', packageFolder))

interface Package { readonly version: string; readonly engines: { readonly node: string } }

export function packageVersion(): string {
  return readPackage().version
}

/** Returns the versions of Node.js that have the known security fixes; null when this version is one of them. */
export function wantedNode(version: string): string | null {
  const { engines: { node } } = readPackage()
  const has = (range: string): boolean => {
    const [, kind, least] = /^(\^|>=)(.*)$/.exec(range)!
    return (kind === '>=' || parts(version)[0] === parts(least!)[0]) && isAtLeast(parts(version), parts(least!))
  }
  return node.split(' || ').some(has) ? null : node
}

function parts(version: string): readonly number[] {
  return version.split('.').map(part => parseInt(part, 10))
}

function isAtLeast(version: readonly number[], least: readonly number[]): boolean {
  const at = version.findIndex((part, index) => part !== least[index])
  return at < 0 || version[at]! > least[at]!
}

function readPackage(): Package {
  return JSON.parse(readFileSync(new URL('package.json', packageFolder), 'utf8')) as Package
}
