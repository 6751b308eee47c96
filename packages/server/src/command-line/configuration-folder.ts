/** The INI files on disk, in ascending order of priority. */
import { isUtf8 } from 'node:buffer'
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { makeDirectory, syncDirectory } from '@sectional/runtime'
import type { ConfigurationFiles } from '../configuration/live-configuration.ts'
import { ConfigurationError, type IniFile } from '../configuration/settings.ts'
import { writeDurably } from './durable-file.ts'
import { defaultIniPath } from './package-files.ts'

/** The file with the settings that were changed over HTTP. It is read last, whatever its name. */
const changesName = 'changed-over-http.ini'

/** Returns the path of the file with the changes for a configuration folder or a single INI file. */
export function changesPath(configuration: string): string {
  if (isFolder(configuration)) return join(configuration, 'local.d', changesName)
  return join(dirname(configuration), `${basename(configuration, '.ini')}.${changesName}`)
}

export class ConfigurationFolder implements ConfigurationFiles {
  readonly #paths: readonly string[]
  /** The folder to which relative paths in the settings refer. */
  readonly folder: string

  /** @param paths folders (local.ini, then local.d/*.ini) or single files; a later one overrides earlier ones */
  constructor(paths: readonly string[]) {
    this.#paths = paths.map(path => resolve(path))
    const last = this.#paths.at(-1)!
    this.folder = isFolder(last) ? last : dirname(last)
  }

  async read(): Promise<readonly IniFile[]> {
    const changes = changesPath(this.#paths.at(-1)!)
    const written = this.#paths.flatMap(path => isFolder(path) ? folderFiles(path) : [path])
      .filter(path => path !== changes)
    return [
      { name: defaultIniPath, text: readFileSync(defaultIniPath, 'utf8'), shipped: true },
      ...[...written, changes].map(path => ({ name: path, text: readText(path) })),
    ]
  }

  async write(file: IniFile): Promise<void> {
    // An earlier process may have made the folder, and have been killed before that was durable.
    if (statSync(file.name, { throwIfNoEntry: false }) === undefined) {
      const directory = dirname(file.name)
      makeDirectory(directory)
      await syncDirectory(dirname(directory))
    }
    await writeDurably(file.name, file.text)
  }
}

function folderFiles(folder: string): string[] {
  const directory = join(folder, 'local.d')
  const names = isFolder(directory) ? readdirSync(directory).filter(name => name.endsWith('.ini')).sort() : []
  return [join(folder, 'local.ini'), ...names.map(name => join(directory, name))]
}

function isFolder(path: string): boolean {
  const status = statSync(path, { throwIfNoEntry: false })
  if (status === undefined && !path.endsWith('local.d')) {
    throw new ConfigurationError(`--config ${path}: there is no such file or folder`)
  }
  return status?.isDirectory() ?? false
}

/** Returns the text of a file. A missing file of a folder is empty, because the API may be the first to write it. */
function readText(path: string): string {
  try {
    // Reading a pipe would block the node until somebody writes to it.
    if (!statSync(path).isFile()) throw new Error('it is not a regular file')
    return textOf(readFileSync(path))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw new ConfigurationError(`${path} cannot be read: ${(error as Error).message}`)
  }
}

/** @throws Error for bytes that are not UTF-8, and would be lost when the file is written again */
function textOf(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString('utf8')
  const line = bytes.toString('latin1').split('\n').findIndex(part => !isUtf8(Buffer.from(part, 'latin1')))
  throw new Error(`line ${line + 1} is not UTF-8; save the file in that encoding`)
}
