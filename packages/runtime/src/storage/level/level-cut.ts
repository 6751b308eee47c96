/**
 * Repairs a store whose writes are not synced before it is opened after a failure of the machine. Any page of its logs
 * can be missing then, not only the last ones, and LevelDB would skip what it cannot read and replay the rest. Tables
 * and the manifest are complete, because LevelDB syncs them before it removes the logs that they replace.
 */
import { readdir, readFile, rm, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import { batchHeader, findManifest, replayedLogs } from './level-check.ts'
import type { Manifest } from './level-manifest.ts'
import { readWholeRecords } from './level-log.ts'

/**
 * Truncates the logs after the last batch before which no batch is missing. The caller must first make sure that no
 * process has the store open (`assertNotOpen`).
 * @returns why the manifest cannot be read, in which case nothing was changed; undefined when it can be read
 * @throws errors of the file system
 */
export async function cutLogs(directory: string): Promise<string | undefined> {
  const names = await readdir(directory)
  const manifest = await findManifest(directory, names)
  if (manifest === undefined) return undefined
  if ('problem' in manifest) return manifest.problem
  const { logNumber } = manifest
  const logs = replayedLogs(names, manifest)
  let isWhole = logNumber === 0 || logs[0]?.number === logNumber
  let expected: number | undefined
  for (const { name } of logs) {
    const path = join(directory, name)
    if (!isWhole) {
      await rm(path)
      continue
    }
    const bytes = await readFile(path)
    const { records, end } = readWholeRecords(bytes)
    const next = sequenceBehind(records, expected, manifest)
    if (next === undefined) await rm(path)
    else if (end < bytes.length) await truncate(path, end)
    isWhole = next !== undefined && end === bytes.length && records.length > 0
    expected = next
  }
  return undefined
}

/** Returns the sequence after the last record; undefined when records before or between these are missing. */
function sequenceBehind(records: readonly Buffer[], from: number | undefined, manifest: Manifest): number | undefined {
  const { lastSequence } = manifest
  let expected = from
  for (const record of records) {
    const { sequence, operations } = batchHeader(record)
    if (expected === undefined ? sequence > lastSequence + 1 : sequence !== expected) return undefined
    expected = sequence + operations
  }
  return expected ?? lastSequence + 1
}

/**
 * Rejects with LevelDB's error when a process has the store open. It changes nothing: LevelDB checks its lock first,
 * and then refuses to open the store in any case, whether or not it exists.
 */
export async function assertNotOpen(directory: string): Promise<void> {
  const probe = new ClassicLevel(directory, { createIfMissing: false, errorIfExists: true })
  try {
    await probe.open()
  } catch (error) {
    const { cause } = error as { readonly cause?: { readonly code?: string } }
    if (cause?.code === 'LEVEL_LOCKED') throw error
  }
}
