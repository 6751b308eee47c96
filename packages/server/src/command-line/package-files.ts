/** Files that ship with this package; they have the same paths from src and from dist. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const packageFolder = new URL('../../', import.meta.url)

export const defaultIniPath = fileURLToPath(new URL('default.ini', packageFolder))

export function packageVersion(): string {
  return (JSON.parse(readFileSync(new URL('package.json', packageFolder), 'utf8')) as { version: string }).version
}
