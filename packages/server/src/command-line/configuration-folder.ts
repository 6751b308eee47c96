/** The INI files on disk, in ascending order of priority. */
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { ConfigurationFiles } from '../configuration/live-configuration.ts'
import { ConfigurationError, type IniFile } from '../configuration/settings.ts'
import { writeDurably } from './durable-file.ts'
import { defaultIniPath } from './package-files.ts'

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
    return [
      { name: defaultIniPath, text: readFileSync(defaultIniPath, 'utf8'), shipped: true },
      ...this.#paths.flatMap(path => isFolder(path) ? folderFiles(path) : [path])
        .map(path => ({ name: path, text: readText(path) })),
    ]
  }

  async write(file: IniFile): Promise<void> {
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
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw new ConfigurationError(`${path} cannot be read: ${(error as Error).message}`)
  }
}
