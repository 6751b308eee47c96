import type { AppendFiles } from './append-files.ts'

/** Keeps the files in memory, so that tests can inspect them. */
export class MemoryAppendFiles implements AppendFiles {
  /** The content of each file. A test may rename and change files. */
  readonly files = new Map<string, string>()
  /** A test can set this to make calls wait or fail before they write. */
  beforeAppend: () => Promise<void> = async () => {}

  async append(path: string, lines: string): Promise<void> {
    await this.beforeAppend()
    const text = this.files.get(path) ?? ''
    this.files.set(path, text + (text === '' || text.endsWith('\n') ? '' : '\n') + lines)
  }
}
