/**
 * Records damage of a store in a file beside LevelDB's own files. Opening a damaged store removes the evidence.
 * Therefore the note is durable before the store is opened, and stays until the damage has been handled.
 */
import { open, readFile, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncDirectory } from '../../files/sync-directory.ts'

/** The maximum number of findings that are kept; one finding already has the full consequences. */
const findingsMax = 20

export class DamageNote {
  readonly #path: string
  #findings: readonly string[] = []

  private constructor(path: string) {
    this.#path = path
  }

  static async read(path: string): Promise<DamageNote> {
    const note = new DamageNote(path)
    try {
      const text = await readFile(path, 'utf8')
      note.#findings = text.split('\n').filter(line => line !== '')
      if (note.#findings.length === 0) note.#findings = ['it was noted to be damaged']
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
    return note
  }

  get findings(): readonly string[] {
    return this.#findings
  }

  /** Adds findings. Durable when resolved. */
  async add(findings: readonly string[]): Promise<void> {
    const all = [...new Set([...this.#findings, ...findings])].slice(0, findingsMax)
    const file = await open(this.#path, 'w', 0o600)
    try {
      await file.writeFile(all.join('\n') + '\n')
      await file.sync()
    } finally {
      await file.close()
    }
    await syncDirectory(dirname(this.#path))
    this.#findings = all
  }

  /** Removes the note. Durable when resolved. */
  async remove(): Promise<void> {
    await rm(this.#path, { force: true })
    await syncDirectory(dirname(this.#path))
    this.#findings = []
  }
}
