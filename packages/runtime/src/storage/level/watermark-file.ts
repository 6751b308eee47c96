/**
 * A file beside LevelDB's own files with the store's watermark: a number that grows with durable batches. The end of a
 * LevelDB log does not show whether a record is missing there or was never written. Therefore the store also keeps the
 * number in a record; if the record has a lower number than the file, acknowledged writes are missing.
 *
 * The file has two slots in different sectors, which are written alternately. A crash that destroys one slot leaves the
 * other one with the previous number.
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
   * @returns the highest number in the file; null when the file is damaged; undefined when it does not exist or was
   * never completed (because of a crash or a full disk)
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

  /** Opens the file, and creates it if it does not exist. Its name is durable when this resolves. */
  static async open(path: string): Promise<WatermarkFile> {
    const existed = await WatermarkFile.read(path) !== undefined
    const file = await open(path, existed ? 'r+' : 'w+')
    try {
      if (!existed) {
        // Write both slots from the first byte on, so that later writes need no further space on a full disk. A file
        // that was cut off contains a slot completely or not at all.
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

  /** Writes a number. Durable when resolved. @param number higher than all earlier numbers */
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
