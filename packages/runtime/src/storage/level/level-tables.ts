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
  /** Where its keys cannot be trusted. */
  readonly ranges: readonly Range[]
}

/**
 * @param contents whether to read the tables as a whole, or only what is needed to find a key in them
 * @param rest called after each table; what it throws ends the check
 * @returns the damaged ones; tables that a compaction removes meanwhile are left out
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

async function tablesOf(directory: string): Promise<readonly TableFile[]> {
  const manifest = (await readFile(join(directory, 'CURRENT'), 'latin1').catch(ifMissing(''))).trim()
  // The manifest may grow meanwhile: what can be read of it is enough.
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

/** Keys of an index are cut and raised, so that they may end in the middle of a character. */
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
