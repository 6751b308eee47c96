/**
 * The databases of a cluster state, ordered by name and found by incarnation. The comparison of two states costs as
 * much as they differ.
 */
import type { DatabaseRecord } from './cluster-state.ts'
import { PersistentMap } from './persistent-map.ts'

type Databases = ReadonlyMap<string, DatabaseRecord>

export interface ChangedDatabase {
  /** Undefined when there was no database of that name. */
  readonly before: DatabaseRecord | undefined
  /** Undefined when there is no database of that name any more. */
  readonly after: DatabaseRecord | undefined
}

/** A map that is never changed in place. */
export class DatabaseMap implements Databases {
  readonly #records: PersistentMap<DatabaseRecord>
  /** Maps each incarnation to the name of its database. */
  readonly #names: PersistentMap<string>

  private constructor(records: PersistentMap<DatabaseRecord>, names: PersistentMap<string>) {
    this.#records = records
    this.#names = names
  }

  static from(databases: Iterable<DatabaseRecord>): DatabaseMap {
    const records = PersistentMap.from([...databases].map(database => [database.name, database] as const))
    return new DatabaseMap(
      records, PersistentMap.from([...records.values()].map(({ name, incarnation }) => [incarnation, name] as const)),
    )
  }

  /** Returns the map itself when it is a `DatabaseMap`, and otherwise a copy as one. */
  static of(databases: Databases): DatabaseMap {
    return databases instanceof DatabaseMap ? databases : DatabaseMap.from(databases.values())
  }

  /**
   * Returns, in the order of names, each database whose record differs between two states. States that were derived
   * from each other are compared at the cost of their differences.
   */
  static changed(before: Databases, after: Databases): Iterable<ChangedDatabase> {
    return before === after ? [] : DatabaseMap.of(after).#records.differences(DatabaseMap.of(before).#records)
  }

  static withIncarnation(databases: Databases, incarnation: string): DatabaseRecord | undefined {
    const map = DatabaseMap.of(databases)
    const name = map.#names.get(incarnation)
    return name === undefined ? undefined : map.get(name)
  }

  get size(): number { return this.#records.size }
  get(name: string): DatabaseRecord | undefined { return this.#records.get(name) }
  has(name: string): boolean { return this.#records.has(name) }

  with(database: DatabaseRecord): DatabaseMap {
    const before = this.get(database.name)
    const names = before === undefined || before.incarnation === database.incarnation
      ? this.#names
      : this.#names.without(before.incarnation)
    return new DatabaseMap(this.#records.with(database.name, database), names.with(database.incarnation, database.name))
  }

  without(name: string): DatabaseMap {
    const before = this.get(name)
    return before === undefined
      ? this
      : new DatabaseMap(this.#records.without(name), this.#names.without(before.incarnation))
  }

  entries() { return this.#records.entries() }
  keys() { return this.#records.keys() }
  values() { return this.#records.values() }
  [Symbol.iterator]() { return this.#records.entries() }
  forEach(callback: (database: DatabaseRecord, name: string, map: Databases) => void): void {
    this.#records.forEach(callback)
  }
}
