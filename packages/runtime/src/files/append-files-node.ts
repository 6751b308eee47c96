import { constants, type Stats } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { AppendFiles } from './append-files.ts'

const ownerOnly = 0o600
const lineFeed = 10

export class NodeAppendFiles implements AppendFiles {
  readonly #folder: string

  /** @param folder to which relative paths refer */
  constructor(folder: string) {
    this.#folder = folder
  }

  async append(path: string, lines: string): Promise<void> {
    const file = await open(
      resolve(this.#folder, path), constants.O_RDWR | constants.O_APPEND | constants.O_CREAT, ownerOnly,
    )
    try {
      const status = await file.stat()
      // Without a reader, a pipe discards lines when it is closed, and a write of many lines would not end.
      if (status.isFIFO()) throw new Error(`${path} is a named pipe`)
      await file.appendFile(await endsWithinLine(file, status) ? `\n${lines}` : lines)
    } finally {
      await file.close()
    }
  }
}

async function endsWithinLine(file: FileHandle, status: Stats): Promise<boolean> {
  if (!status.isFile() || status.size === 0) return false
  const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, status.size - 1)
  return bytesRead === 1 && buffer[0] !== lineFeed
}
