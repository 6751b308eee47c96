/**
 * Checks a table of LevelDB (github.com/google/leveldb/blob/main/doc/table_format.md). A table has data blocks, a
 * filter, a metaindex and an index, each with a checksum, and a footer with the positions of the last two. As
 * classic-level opens it, LevelDB checks none of these checksums.
 */
import { crc32c, maskCrc } from './crc32c.ts'
import { readVarint, unsnappy } from './snappy.ts'

const footerBytes = 48
const magic = 0xdb4775248b80fb57n
/** The trailer of each block: its compression and its checksum. */
const trailerBytes = 5
/** LevelDB adds a sequence and a type to each key. */
const keyTrailerBytes = 8
const snappyKind = 1

export interface TableBytes {
  readonly length: number
  read(offset: number, length: number): Promise<Buffer>
}

/**
 * A range of damaged keys: above `after` and up to `upTo`, both as latin1 text of bytes. When absent, the range begins
 * at the first or ends at the last key of the table.
 */
export interface DamagedKeys { readonly after?: string; readonly upTo?: string }

interface Handle { readonly offset: number; readonly size: number }
interface BlockEntry { readonly key: Buffer; readonly value: Buffer }

class TableError extends Error {}

/**
 * @param contents whether to read the data blocks too, or only the parts that are needed to find them
 * @returns the ranges of damaged keys in order; empty when there is no damage
 * @throws any error of `read`
 */
export async function checkTable(table: TableBytes, contents: boolean): Promise<DamagedKeys[]> {
  try {
    const blocks = await dataBlocks(table)
    if (!contents) return []
    const damaged: DamagedKeys[] = []
    let after: string | undefined
    for (const { key, handle } of blocks) {
      const sound = await readBlock(table, handle).then(() => true, error => {
        if (error instanceof TableError) return false
        throw error
      })
      if (!sound) {
        damaged.push({ ...(after !== undefined && { after }), ...(handle !== blocks.at(-1)!.handle && { upTo: key }) })
      }
      after = key
    }
    return damaged
  } catch (error) {
    if (error instanceof TableError || error instanceof RangeError) return [{}]
    throw error
  }
}

/** Finds the data blocks. Every part of the file must directly follow the previous one. */
async function dataBlocks(table: TableBytes): Promise<{ readonly key: string; readonly handle: Handle }[]> {
  if (table.length < footerBytes) throw new TableError('too short')
  const footer = await table.read(table.length - footerBytes, footerBytes)
  if (footer.readBigUInt64LE(footerBytes - 8) !== magic) throw new TableError('the magic number differs')
  const input = { at: 0 }
  const metaindex = readHandle(footer, input)
  const index = readHandle(footer, input)
  expectAt(endOf(index), table.length - footerBytes)
  expectAt(index.offset, endOf(metaindex))
  const found = entries(await readBlock(table, index)).map(({ key, value }) => (
    { key: key.toString('latin1', 0, Math.max(0, key.length - keyTrailerBytes)), handle: readHandle(value, { at: 0 }) }
  ))
  let end = 0
  for (const { handle } of found) {
    expectAt(handle.offset, end)
    end = endOf(handle)
  }
  for (const { value } of entries(await readBlock(table, metaindex))) {
    const filter = readHandle(value, { at: 0 })
    expectAt(filter.offset, end)
    await readBlock(table, filter)
    end = endOf(filter)
  }
  expectAt(metaindex.offset, end)
  return found
}

function expectAt(found: number, expected: number): void {
  if (found !== expected) throw new TableError(`a block begins at byte ${found}, not at ${expected}`)
}

function endOf({ offset, size }: Handle): number {
  return offset + size + trailerBytes
}

function readHandle(bytes: Buffer, input: { at: number }): Handle {
  return { offset: readVarint(bytes, input), size: readVarint(bytes, input) }
}

/** @throws TableError when the block's checksum does not match */
async function readBlock(table: TableBytes, handle: Handle): Promise<Buffer> {
  const { offset, size } = handle
  if (endOf(handle) > table.length) throw new TableError('a block ends after the end of the file')
  const bytes = await table.read(offset, size + trailerBytes)
  if (bytes.length !== size + trailerBytes) throw new TableError('the file is shorter than it was')
  if (maskCrc(crc32c(bytes, 0, size + 1)) !== bytes.readUInt32LE(size + 1)) {
    throw new TableError(`the checksum of the block at ${offset} differs`)
  }
  return bytes
}

/** Returns the entries of an index block. Each key shares its first bytes with the key before it. */
function entries(block: Buffer): BlockEntry[] {
  const content = block.subarray(0, block.length - trailerBytes)
  const bytes = block[content.length] === snappyKind ? unsnappy(content) : content
  const end = bytes.length - 4 - 4 * bytes.readUInt32LE(bytes.length - 4)
  const found: BlockEntry[] = []
  const input = { at: 0 }
  let key: Buffer = Buffer.alloc(0)
  while (input.at < end) {
    const shared = readVarint(bytes, input)
    const added = readVarint(bytes, input)
    const length = readVarint(bytes, input)
    key = Buffer.concat([key.subarray(0, shared), bytes.subarray(input.at, input.at += added)])
    found.push({ key, value: bytes.subarray(input.at, input.at += length) })
  }
  return found
}
