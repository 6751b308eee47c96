/** The values of declared options: parsed once, and again when a setting changes that applies without a restart. */
import type { Option } from './option.ts'

/** Options by the names that the code gives to their values. */
export type OptionTable = Readonly<Record<string, Option<unknown>>>

/** The values of a table's options. A property changes while the node runs only when its option is `live`. */
export type OptionValues<Table extends OptionTable> = {
  readonly [Name in keyof Table]: Table[Name] extends Option<infer Value> ? Value : never
}

/** The text that somebody has set, or undefined where the option has its default. */
export type ReadSetting = (section: string, key: string) => string | undefined

/** The defaults of all options of a table. */
export function defaultValues<Table extends OptionTable>(table: Table): OptionValues<Table> {
  return parseValues(table, () => undefined)
}

/** @throws Error for the first value that its option refuses */
export function parseValues<Table extends OptionTable>(table: Table, read: ReadSetting): OptionValues<Table> {
  const values = Object.entries(table).map(([name, option]) => [name, parseSetting(option, read)])
  return Object.freeze(Object.fromEntries(values)) as OptionValues<Table>
}

function parseSetting(option: Option<unknown>, read: ReadSetting): unknown {
  const text = read(option.section, option.key)
  return text === undefined ? option.default : option.parse(text)
}

/** Values that follow the settings while the node runs. */
export class LiveOptions<Table extends OptionTable> {
  /** The same object for the life of the node: who reads a property gets the value of now. */
  readonly values: OptionValues<Table>
  readonly #table: Table
  readonly #read: ReadSetting

  /** @throws Error for the first value that its option refuses */
  constructor(table: Table, read: ReadSetting) {
    this.values = { ...parseValues(table, read) }
    this.#table = table
    this.#read = read
  }

  /**
   * Reads the options that apply without a restart again; to be called when settings have changed. A text that its
   * option refuses, as an edited file may have it, counts as the default.
   */
  refresh(): void {
    const values = this.values as Record<string, unknown>
    for (const [name, option] of Object.entries(this.#table)) {
      if (option.effect === 'live') values[name] = this.#valueOrDefault(option)
    }
  }

  #valueOrDefault(option: Option<unknown>): unknown {
    try {
      return parseSetting(option, this.#read)
    } catch {
      return option.default
    }
  }
}
