/** Checks the tables that a store's manifest names. */
import { open, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { lastKey } from '../storage.ts'
import type { Range } from '../storage.ts'
import { readLog } from './level-log.ts'
import { readManifest } from './level-manifest.ts'
import type { TableFile } from './level-manifest.ts'
import { checkTable } from './level-table.ts'
import type { DamagedKeys, TableBytes } from './level-table.ts'

export interface DamagedTable {
  readonly file: string
  /** The ranges in which keys or values may be damaged. */
  readonly ranges: readonly Range[]
}

/**
 * @param contents whether to read the tables completely, or only the parts that are needed to find a key
 * @param rest called after each table; an error that it throws ends the check
 * @returns the damaged tables; tables that a compaction removes during the check are not included
 */
export async function checkTables(
  directory: string, contents: boolean, rest: () => Promise<void> = async () => {},
): Promise<DamagedTable[]> {
  const damaged: DamagedTable[] = []
  const tables = await tablesOf(directory)
  const names = new Set(tables.length > 0 ? await readdir(directory) : [])
  for (const table of tables) {
    const name = String(table.number).padStart(6, '0')
    const file = names.has(`${name}.sst`) ? `${name}.sst` : `${name}.ldb`
    const ranges = await checkFile(join(directory, file), table, contents)
    if (ranges.length > 0) damaged.push({ file, ranges })
    await rest()
  }
  return damaged
}

/**
 * Returns keys in ascending order that divide a range of a store, which may be open, at the ends of tables.
 * @param bytes the size of a part; one table can exceed it
 */
export async function partBounds(directory: string, { gte, lt }: Range, bytes: number): Promise<string[]> {
  const ends = (await tablesOf(directory)).map(table => ({ bytes: table.bytes, end: Buffer.from(table.largest) }))
    .filter(({ end }) => end.compare(Buffer.from(gte)) >= 0 && end.compare(Buffer.from(lt)) < 0)
    .sort((a, b) => a.end.compare(b.end))
  const bounds: string[] = []
  let partBytes = 0
  for (const table of ends) {
    partBytes += table.bytes
    if (partBytes < bytes) continue
    bounds.push(`${table.end}\0`)
    partBytes = 0
  }
  return bounds
}

async function tablesOf(directory: string): Promise<readonly TableFile[]> {
  const manifest = (await readFile(join(directory, 'CURRENT'), 'latin1').catch(ifMissing(''))).trim()
  // LevelDB may append to the manifest during the read; the readable part is sufficient.
  return manifest === ''
    ? []
    : readManifest(readLog(await readFile(join(directory, manifest)).catch(ifMissing(Buffer.alloc(0)))).records).tables
}

async function checkFile(path: string, { bytes, smallest, largest }: TableFile, contents: boolean): Promise<Range[]> {
  const file = await open(path, 'r').catch(ifMissing(undefined))
  if (file === undefined) return []
  try {
    const { size } = await file.stat()
    const whole = contents ? await file.readFile() : undefined
    const table: TableBytes = {
      length: size,
      read: async (offset, length) =>
        whole?.subarray(offset, offset + length) ?? (await file.read(Buffer.alloc(length), 0, length, offset)).buffer,
    }
    const damaged: readonly DamagedKeys[] = size === bytes ? await checkTable(table, contents) : [{}]
    return damaged.map(({ after, upTo }) => ({
      gte: after === undefined ? smallest : prefixText(after),
      lt: (upTo === undefined ? largest : prefixText(upTo)) + lastKey,
    }))
  } finally {
    await file.close()
  }
}

/**
 * Converts a key of an index into text. LevelDB shortens and increments these keys, so they may end in the middle of a
 * character.
 */
function prefixText(key: string): string {
  const text = Buffer.from(key, 'latin1').toString()
  const broken = text.indexOf('\ufffd')
  return broken < 0 ? text : text.slice(0, broken)
}

function ifMissing<T>(value: T): (error: unknown) => T {
  return error => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return value
    throw error
  }
}
