import { mkdir, rm, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import type { Iterator as ClassicIterator, Snapshot as ClassicSnapshot } from 'classic-level'
import { checkStoreName } from '../files/store-name.ts'
import { GroupCommitStore } from './group-commit-store.ts'
import type { BatchOperations, GroupObserver } from './group-commit-store.ts'
import { GroupedReads } from './grouped-reads.ts'
import { checkLogs } from './level/level-check.ts'
import { assertNotOpen, cutLogs } from './level/level-cut.ts'
import { checkTables, partBounds } from './level/level-tables.ts'
import { DamageNote } from './level/damage-note.ts'
import { encodeNumber, readNumber, Watermark } from './level/watermark.ts'
import { WatermarkFile } from './level/watermark-file.ts'
import { lastKey, StorageError } from './storage.ts'
import { syncDirectory } from '../files/sync-directory.ts'
import type {
  IterateOptions, Range, Storage, Store, StoreEntry, StoreIterator, StoreOptions, StoreSnapshot,
} from './storage.ts'

type Level = ClassicLevel<string, Uint8Array>
type LevelIterator = ClassicIterator<Level, string, Uint8Array>

const defaultBufferBytes = 16 * 1024 * 1024
/** The number of tables that LevelDB keeps open; a table has up to `tableBytes`. */
const openFilesMax = 500
const tableBytes = 8 * 1024 * 1024
/** A compaction is divided into parts of this many bytes, so that it can be ended. Each takes half a second. */
const compactedAtOnceBytes = 64 * 1024 * 1024
/** `IterateOptions.pageBytes` if it is not given. */
const pageBytesMax = 1024 * 1024
const defaultWatermarkMs = 1000
/** The key of the watermark: up to which batch the store is known to be durable. It sorts after all keys of ranges. */
const watermarkKey = `${lastKey}watermark`
/** A batch without other operations deletes this key. */
const idleKey = `${lastKey}idle`
const emptyBytes = new Uint8Array(0)
/** The codes of LevelDB's errors after a database, an iterator or a snapshot was closed. */
const notOpenCodes: ReadonlySet<string> =
  new Set(['LEVEL_DATABASE_NOT_OPEN', 'LEVEL_ITERATOR_NOT_OPEN', 'LEVEL_SNAPSHOT_NOT_OPEN'])

export interface LevelStorageOptions {
  /** The directory in which each store has a folder. */
  readonly directory: string
  readonly observer?: GroupObserver
}

/** Stores as LevelDB databases below one directory. */
export class LevelStorage implements Storage {
  readonly #options: LevelStorageOptions

  constructor(options: LevelStorageOptions) {
    this.#options = options
  }

  async open(name: string, options: StoreOptions = {}): Promise<Store> {
    checkStoreName(name)
    const { directory, observer } = this.#options
    const location = join(directory, name)
    try {
      await mkdir(location, { recursive: true })
      await syncDirectory(directory)
      await syncDirectory(dirname(directory))
      return await openStore(name, location, options, observer)
    } catch (error) {
      throw openError(error, location, options.synced === false)
    }
  }

  async exists(name: string): Promise<boolean> {
    checkStoreName(name)
    try {
      await stat(join(this.#options.directory, name))
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
      throw toStorageError(error)
    }
  }

  async remove(name: string): Promise<void> {
    checkStoreName(name)
    const location = join(this.#options.directory, name)
    try {
      if (await this.exists(name)) await assertNotOpen(location)
      await rm(location, { recursive: true, force: true })
    } catch (error) {
      throw openError(error, location)
    }
  }
}

async function openStore(
  name: string, location: string, options: StoreOptions, observer: GroupObserver | undefined,
): Promise<LevelStore> {
  if (options.synced === false) return await openUnsynced(name, location, options, observer)
  const { onDamage = 'refuse', watermarkMs = defaultWatermarkMs } = options
  const note = await DamageNote.read(join(location, 'DAMAGED'))
  const wasNoted = note.findings.length > 0
  const handle = async (findings: readonly string[]): Promise<void> => {
    if (findings.length > 0 && onDamage === 'report') await note.add(findings)
    else if (findings.length + note.findings.length > 0 && onDamage === 'refuse') {
      throw damaged([...note.findings, ...findings])
    }
  }
  await handle(await checkLogs(location))
  // Check the tables too, because a key that cannot be found must not be taken for a key that was never written.
  if (onDamage === 'refuse') {
    await handle((await checkTables(location, true)).map(({ file }) => `a checksum in the table ${file} differs`))
  }
  // Create it only now, because it opens itself.
  const db = makeLevel(location, options)
  try {
    await db.open()
  } catch (error) {
    const { code, message } = toStorageError(error)
    // Another process has the store open, so the files may have looked damaged because it was writing them.
    if (!wasNoted && code === 'locked') await note.remove()
    // A damaged CURRENT or manifest may name files that do not exist, which LevelDB reports as another error.
    if (note.findings.length > 0 && (code === 'io' || code === 'closed')) {
      throw new StorageError('corrupt', `${note.findings.join('; ')} (${message})`, { cause: error })
    }
    throw error
  }
  try {
    const path = join(location, 'WATERMARK')
    const number = readNumber(db.getSync(watermarkKey))
    await handle(checkWatermark(number, await WatermarkFile.read(path)))
    const watermark = await Watermark.open(path, number, watermarkMs)
    return new LevelStore(name, db, { durability: { note, watermark }, ...options, observer })
  } catch (error) {
    await db.close()
    throw error
  }
}

async function openUnsynced(
  name: string, location: string, options: StoreOptions, observer: GroupObserver | undefined,
): Promise<LevelStore> {
  await assertNotOpen(location)
  const problem = await cutLogs(location)
  if (problem !== undefined) throw damaged([problem])
  const tables = await checkTables(location, false)
  if (tables.length > 0) throw damaged(tables.map(({ file }) => `the table ${file} is damaged`))
  const db = makeLevel(location, options)
  try {
    await db.open()
  } catch (error) {
    const { code, message } = toStorageError(error)
    // Sectors that cannot be read are damage, too. LevelDB reports only the text of the system.
    throw code === 'io' && /Input\/output error/.test(message) ? damaged([message]) : error
  }
  return new LevelStore(name, db, { ...options, observer })
}

function makeLevel(location: string, { writeBufferBytes, cacheBytes }: StoreOptions): Level {
  return new ClassicLevel(location, {
    keyEncoding: 'utf8',
    valueEncoding: 'view',
    writeBufferSize: writeBufferBytes ?? defaultBufferBytes,
    cacheSize: cacheBytes ?? defaultBufferBytes,
    maxOpenFiles: openFilesMax,
    maxFileSize: tableBytes,
  })
}

/** What a store with synced writes needs to detect missing writes. */
interface Durability { readonly note: DamageNote; readonly watermark: Watermark }

interface LevelStoreParts {
  /** Absent when writes are not synced. */
  readonly durability?: Durability
  readonly writeBufferBytes?: number
  readonly observer: GroupObserver | undefined
}

class LevelStore extends GroupCommitStore {
  readonly #db: Level
  readonly #reads: GroupedReads
  readonly #durability: Durability | undefined
  readonly #writeBufferBytes: number
  /** The reason why the database is not open although the store is. */
  #recovery: StorageError | undefined

  constructor(
    name: string, db: Level, { durability, writeBufferBytes = defaultBufferBytes, observer }: LevelStoreParts,
  ) {
    super(name, setImmediate, observer)
    this.#db = db
    this.#reads = new GroupedReads(keys => db.getMany(keys))
    this.#durability = durability
    this.#writeBufferBytes = writeBufferBytes
    if (durability === undefined) return
    durability.watermark.onDue = () => {
      this.write(batch => batch.delete(idleKey)).catch(() => { /* the next write tries again */ })
    }
  }

  override get damage(): readonly string[] {
    return this.#durability?.note.findings ?? []
  }

  protected override async _forgetDamage(): Promise<void> {
    if (this.#durability === undefined) return
    const { note, watermark } = this.#durability
    // Write a new watermark first; otherwise the next opening would compare the store with the watermark of the lost
    // writes.
    watermark.demand()
    await this.write(batch => batch.delete(idleKey))
    await watermark.settled()
    await note.remove()
  }

  protected override async _checkFiles(contents: boolean, rest: () => Promise<void>): Promise<readonly Range[]> {
    const damaged = await checkTables(this.#db.location, contents, rest)
    return damaged.flatMap(({ ranges }) => ranges)
  }

  protected override _getSync(key: string): Uint8Array | undefined {
    return this.#db.getSync(key)
  }

  protected override _getMany(keys: readonly string[]): Promise<(Uint8Array | undefined)[]> {
    return this.#reads.getMany(keys)
  }

  protected override async _writeBatch(operations: BatchOperations): Promise<void> {
    const { keys, values } = operations
    const batch = this.#db.batch()
    for (let index = 0; index < keys.length; index++) {
      const value = values[index] ?? null
      if (value === null) batch.del(keys[index]!)
      else batch.put(keys[index]!, value)
    }
    operations.release()
    if (this.#durability === undefined) return await batch.write({ sync: false })
    const { watermark } = this.#durability
    const mark = watermark.next()
    if (mark !== undefined) batch.put(watermarkKey, encodeNumber(mark))
    await batch.write({ sync: true })
    await watermark.written(mark)
  }

  protected override _iterate(range: Range, options: IterateOptions): StoreIterator {
    return openIterator(this.#db, range, options)
  }

  protected override _snapshot(): StoreSnapshot {
    return new LevelStoreSnapshot(this.#db)
  }

  protected override _approximateSize({ gte, lt }: Range): Promise<number> {
    return this.#db.approximateSize(gte, lt)
  }

  protected override _compactionBounds(range: Range): Promise<readonly string[]> {
    return partBounds(this.#db.location, range, compactedAtOnceBytes)
  }

  protected override _compact({ gte, lt }: Range): Promise<void> {
    return this.#db.compactRange(gte, lt)
  }

  protected override async _close(afterFailure: boolean): Promise<void> {
    if (this.#durability !== undefined) await this.#coverLast(this.#durability.watermark, afterFailure)
    await this.#db.close()
  }

  async #coverLast(watermark: Watermark, afterFailure: boolean): Promise<void> {
    try {
      const mark = watermark.last()
      // Behind an incomplete record of the log, the mark would not be found.
      if (mark !== undefined && !afterFailure) {
        await this.#db.batch().put(watermarkKey, encodeNumber(mark)).write({ sync: true })
        await watermark.written(mark)
      }
      await watermark.close()
    } catch {
      // The disk is full or fails. Acknowledged writes are durable, but a later loss of the last ones could not be
      // detected.
    }
  }

  /**
   * Recovers from a failed write by reopening the database. A failed append leaves a torn record in LevelDB's log,
   * which makes the records after it unreadable at replay, and after a failed fsync LevelDB refuses all writes.
   * Reopening starts a new log, but first writes the old log's records into a table. While there is no space for that,
   * the database stays open for reading.
   */
  protected override async _recover(): Promise<void> {
    const { bavail, bsize } = await statfs(this.#db.location)
    const neededBytes = 2 * this.#writeBufferBytes
    if (this.#db.status === 'open' && bavail * bsize < neededBytes) {
      throw new StorageError(
        'full',
        `${this.#db.location} takes writes again once the disk has ${neededBytes} free bytes; it has ${bavail * bsize}`,
      )
    }
    this.#recovery = new StorageError('io', `the store ${this.name} is being opened again after a failed write`)
    try {
      await this.#db.close()
      await this.#db.open()
      this.#recovery = undefined
    } catch (error) {
      throw this.#recovery = openError(error, this.#db.location)
    }
  }

  protected override _toStorageError(error: unknown): StorageError {
    const mapped = toStorageError(error)
    return mapped.code === 'closed' && this.#recovery !== undefined ? this.#recovery : mapped
  }
}

function openIterator(
  db: Level, { gte, lt }: Range, options: IterateOptions, snapshot?: ClassicSnapshot,
): StoreIterator {
  const { reverse = false, limit = -1, values = true, text = false, pageBytes = pageBytesMax } = options
  // A text costs classic-level 0.5 us, and a Buffer 1.9. Without values, it returns an empty one for each entry.
  const encoding = text || !values ? { valueEncoding: 'utf8' } : {}
  const read = { gte, lt, reverse, limit, values, highWaterMarkBytes: pageBytes, ...encoding }
  const ofText = (value: Uint8Array): Uint8Array => Buffer.from(value as unknown as string)
  const bytesOf = !values ? () => emptyBytes : text ? ofText : undefined
  return new LevelStoreIterator(db.iterator(snapshot === undefined ? read : { ...read, snapshot }), bytesOf)
}

class LevelStoreSnapshot implements StoreSnapshot {
  readonly #db: Level
  readonly #snapshot: ClassicSnapshot

  constructor(db: Level) {
    this.#db = db
    this.#snapshot = db.snapshot()
  }

  getSync(key: string): Uint8Array | undefined {
    return this.#whileOpen(() => this.#db.getSync(key, { snapshot: this.#snapshot }))
  }

  iterate(range: Range, options: IterateOptions = {}): StoreIterator {
    return this.#whileOpen(() => openIterator(this.#db, range, options, this.#snapshot))
  }

  close(): Promise<void> {
    return this.#snapshot.close()
  }

  /** Fails when the snapshot was closed, also by a recovery of the store; `getSync` of classic-level does not check. */
  #whileOpen<Result>(read: () => Result): Result {
    try {
      this.#snapshot.ref()
      try {
        return read()
      } finally {
        this.#snapshot.unref()
      }
    } catch (error) {
      throw toStorageError(error)
    }
  }
}

class LevelStoreIterator implements StoreIterator {
  readonly #iterator: LevelIterator
  readonly #bytesOf: ((value: Uint8Array) => Uint8Array) | undefined

  /** @param bytesOf returns the bytes of what the iterator returns as a value; undefined when it returns bytes */
  constructor(iterator: LevelIterator, bytesOf: ((value: Uint8Array) => Uint8Array) | undefined) {
    this.#iterator = iterator
    this.#bytesOf = bytesOf
  }

  async next(count: number): Promise<StoreEntry[]> {
    try {
      const entries = await this.#iterator.nextv(count)
      const bytesOf = this.#bytesOf
      return bytesOf === undefined ? entries : entries.map(([key, value]) => [key, bytesOf(value)])
    } catch (error) {
      throw toStorageError(error)
    }
  }

  close(): Promise<void> {
    return this.#iterator.close()
  }
}

/** @param number the watermark in the store @param file the watermark in the file beside it */
function checkWatermark(number: number, file: number | null | undefined): string[] {
  if (file === null) return ['WATERMARK is damaged in both of its slots']
  if (file === undefined) return number > 0 ? ['WATERMARK is missing'] : []
  return number < file
    ? [`its last writes are missing: it ends at mark ${number}, and mark ${file} was acknowledged`]
    : []
}

function damaged(findings: readonly string[]): StorageError {
  return new StorageError('corrupt', findings.join('; '))
}

/** @param canBeRemoved whether the data of the store can be computed again */
function openError(error: unknown, location: string, canBeRemoved = false): StorageError {
  const mapped = toStorageError(error)
  if (mapped.code === 'locked') {
    const reason = `${location} is in use by another process (or opened twice): stop it, or give this node a data `
      + 'directory of its own'
    return new StorageError('locked', reason, { cause: error })
  }
  if (mapped.code === 'corrupt' && !canBeRemoved) {
    return new StorageError('corrupt', `${location} is damaged: ${mapped.message}. ` +
      'If other nodes hold the data, empty this node\'s data directory and start the node under the same name: ' +
      'it is filled from the other nodes (docs/operations.md)', {
        cause: error,
      })
  }
  // LevelDB calls a database whose opening failed not open. Nobody has closed the store, so it must be tried again.
  const code = mapped.code === 'closed' ? 'io' : mapped.code
  return new StorageError(code, `${location} cannot be opened: ${mapped.message}`, { cause: error })
}

/**
 * Converts an error of LevelDB, which has a class and the system's text. When opening failed, its cause has the code.
 */
function toStorageError(error: unknown): StorageError {
  if (error instanceof StorageError) return error
  const codes: string[] = []
  let message = ''
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    codes.push(String((at as NodeJS.ErrnoException).code ?? ''))
    message = at.message
  }
  const code = codes.includes('LEVEL_LOCKED') ? 'locked'
    : codes.includes('LEVEL_CORRUPTION') ? 'corrupt'
    : codes.includes('ENOSPC') || /No space left on device|Disk quota exceeded/i.test(message) ? 'full'
    : codes.some(each => notOpenCodes.has(each)) ? 'closed'
    : 'io'
  return new StorageError(code, message || String(error), { cause: error })
}
