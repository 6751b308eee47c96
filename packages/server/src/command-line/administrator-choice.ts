/** The administrator whom the caller of `sectional cluster` chooses: by a flag, a file, or the environment. */
import { readFileSync } from 'node:fs'
import { fitsIni } from '../configuration/ini-file.ts'
import { adminSection } from '../configuration/live-configuration.ts'
import type { Administrator } from './cluster-record.ts'
import { UsageError } from './flags.ts'

/** Environment variable with NAME:PASSWORD. */
export const administratorVariable = 'SECTIONAL_ADMIN'

/**
 * Returns null when nobody is chosen. A flag takes precedence over the environment.
 * @param flags `admin`: NAME:PASSWORD; `file`: path of a file whose first line is NAME:PASSWORD
 * @throws UsageError for two flags, for a file that cannot be read, and for a text of another form. It does not contain
 * the text
 */
export function chooseAdministrator(
  { admin, file }: { readonly admin?: string | undefined; readonly file?: string | undefined },
  environment: Readonly<Record<string, string | undefined>>,
): Administrator | null {
  if (admin !== undefined && file !== undefined) throw new UsageError('--admin and --admin-file: only one is allowed')
  if (admin !== undefined) return parseAdministrator(admin, '--admin')
  if (file !== undefined) return parseAdministrator(firstLine(file), `--admin-file ${file}`)
  const variable = environment[administratorVariable]
  return variable === undefined || variable === '' ? null : parseAdministrator(variable, administratorVariable)
}

function firstLine(file: string): string {
  try {
    return readFileSync(file, 'utf8').split(/\r?\n/, 1)[0]!
  } catch (error) {
    throw new UsageError(`--admin-file ${file}: ${(error as Error).message}`)
  }
}

function parseAdministrator(text: string, source: string): Administrator {
  const colon = text.indexOf(':')
  const [name, password] = [text.slice(0, colon), text.slice(colon + 1)]
  if (colon < 1 || password === '' || /[\s=;[\]\p{Cc}\p{Cs}]|^#/u.test(name) || !fitsIni(adminSection, name, password)
    || /^-(pbkdf2|hashed)/.test(password)) {
    throw new UsageError(`${source}: must be NAME:PASSWORD with a name without blanks, control characters, "=", ";" `
      + 'and brackets, and a password without line breaks and without blanks at its ends')
  }
  return { name, password }
}
