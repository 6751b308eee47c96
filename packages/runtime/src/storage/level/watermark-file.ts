/**
 * A number in a file beside LevelDB's own: how far the store is known to be durable. A log of LevelDB does not tell a
 * record that is missing at its end from one that was never written; the store keeps the same number in a record, and
 * one that is less than the file's shows that acknowledged writes are gone.
 *
 * The file has two slots, each in a sector of its own, which are written in turn: a slot that a crash spoils leaves the
 * one before it.
 */
import { open, readFile } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isSealed, sealBytes, sealRecord } from '../sealed-record.ts'
import { syncDirectory } from '../../files/sync-directory.ts'

const slotDistance = 4096
const slotBytes = sealBytes + 8

export class WatermarkFile {
  readonly #file: FileHandle

  private constructor(file: FileHandle) {
    this.#file = file
  }

  /**
   * @returns the greatest number in the file; null: it is damaged; undefined: there is none, or it was never finished
   * (a crash, a full disk)
   */
  static async read(path: string): Promise<number | null | undefined> {
    let bytes
    try {
      bytes = await readFile(path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
    if (bytes.length < slotBytes || bytes.every(byte => byte === 0)) return undefined
    const numbers = [0, 1].flatMap(slot => {
      const record = bytes.subarray(slot * slotDistance, slot * slotDistance + slotBytes)
      return record.length === slotBytes && isSealed(record) ? [Number(record.readBigUInt64BE(sealBytes))] : []
    })
    return numbers.length === 0 ? null : Math.max(...numbers)
  }

  /** Opens the file, which is made where there is none. Its name is durable when this resolves. */
  static async open(path: string): Promise<WatermarkFile> {
    const existed = await WatermarkFile.read(path) !== undefined
    const file = await open(path, existed ? 'r+' : 'w+')
    try {
      if (!existed) {
        // Both slots, so that later writes need no room on a full disk, from the first byte on: what is cut short lacks
        // a slot, or has it wholly.
        await file.writeFile(Buffer.concat([slot(0), Buffer.alloc(slotDistance - slotBytes), slot(0)]))
        await file.sync()
        await syncDirectory(dirname(path))
      }
    } catch (error) {
      await file.close()
      throw error
    }
    return new WatermarkFile(file)
  }

  /** Durable when resolved. @param number greater than the ones before */
  async write(number: number): Promise<void> {
    await this.#file.write(slot(number), 0, slotBytes, number % 2 * slotDistance)
    await this.#file.datasync()
  }

  close(): Promise<void> {
    return this.#file.close()
  }
}

function slot(number: number): Buffer {
  const record = Buffer.alloc(slotBytes)
  record.writeBigUInt64BE(BigInt(number), sealBytes)
  return sealRecord(record)
}
