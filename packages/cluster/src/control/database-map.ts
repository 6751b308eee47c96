/** The databases of a cluster state: by name in order, and by incarnation, with what differs between two states at the cost of the difference. */
import type { DatabaseRecord } from './cluster-state.ts'
import { PersistentMap } from './persistent-map.ts'

type Databases = ReadonlyMap<string, DatabaseRecord>

export interface ChangedDatabase {
  /** Undefined: no database of that name was there. */
  readonly before: DatabaseRecord | undefined
  /** Undefined: there is none any more. */
  readonly after: DatabaseRecord | undefined
}

/** Immutable. */
export class DatabaseMap implements Databases {
  readonly #records: PersistentMap<DatabaseRecord>
  /** Incarnation -> name. */
  readonly #names: PersistentMap<string>

  private constructor(records: PersistentMap<DatabaseRecord>, names: PersistentMap<string>) {
    this.#records = records
    this.#names = names
  }

  static from(databases: Iterable<DatabaseRecord>): DatabaseMap {
    const records = PersistentMap.from([...databases].map(database => [database.name, database] as const))
    return new DatabaseMap(records, PersistentMap.from([...records.values()].map(({ name, incarnation }) => [incarnation, name] as const)))
  }

  /** The map itself when it is one of these. */
  static of(databases: Databases): DatabaseMap { return databases instanceof DatabaseMap ? databases : DatabaseMap.from(databases.values()) }

  /** What became of each database whose record is another one, by name. Two states with a common past are compared at the cost of what differs. */
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
    const names = before === undefined || before.incarnation === database.incarnation ? this.#names : this.#names.without(before.incarnation)
    return new DatabaseMap(this.#records.with(database.name, database), names.with(database.incarnation, database.name))
  }

  without(name: string): DatabaseMap {
    const before = this.get(name)
    return before === undefined ? this : new DatabaseMap(this.#records.without(name), this.#names.without(before.incarnation))
  }

  entries() { return this.#records.entries() }
  keys() { return this.#records.keys() }
  values() { return this.#records.values() }
  [Symbol.iterator]() { return this.#records.entries() }
  forEach(callback: (database: DatabaseRecord, name: string, map: Databases) => void): void { this.#records.forEach(callback) }
}
