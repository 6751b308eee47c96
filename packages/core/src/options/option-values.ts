/** The values of declared options. Values that apply without a restart are parsed again when settings change. */
import type { Option } from './option.ts'

/** Options, by the names under which the code reads their values. */
export type OptionTable = Readonly<Record<string, Option<unknown>>>

/** The values of a table's options. A property changes while the node runs only when its option is `live`. */
export type OptionValues<Table extends OptionTable> = {
  readonly [Name in keyof Table]: Table[Name] extends Option<infer Value> ? Value : never
}

/** Returns the text of a setting, or undefined when it is unset and the option has its default. */
export type ReadSetting = (section: string, key: string) => string | undefined

/** Returns the defaults of all options of a table. */
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
  /** This object stays the same while the node runs, and its properties always have the current values. */
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
   * Reads again the options that apply without a restart. Call this when settings have changed. An option whose text is
   * invalid, which an edited file may contain, gets its default.
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
