/**
 * How an option of the configuration is declared. A declaration is the only place that knows the option's name, type,
 * limits, default, help text, and whether a change applies without a restart. The parsed values (`option-values.ts`),
 * the checks, the configuration API, `default.ini` and docs/configuration.md are all derived from it.
 */
import type { OptionType } from './option-type.ts'

export interface Option<Value> {
  /** `section/key` as in the INI files, for instance `couchdb/max_document_size`. */
  readonly name: string
  readonly section: string
  readonly key: string
  /** The values that are allowed, in words. */
  readonly kind: string
  /** Unit of a number, in words; undefined for counts and for values other than numbers. */
  readonly unit: string | undefined
  readonly default: Value
  /** The default as an INI file has it, which is not empty; null: the option is unset by default. */
  readonly defaultText: string | null
  readonly help: string
  /** `live`: a change applies to the next request. `restart`: the option is read when the node starts. */
  readonly effect: 'live' | 'restart'
  /** The value is shown as `****` in error messages. */
  readonly secret: boolean
  /**
   * The option can be changed in the configuration files and the environment only, not over HTTP. This protects paths
   * and programs of the machine, and settings that decide who can join the cluster.
   */
  readonly filesOnly: boolean
  /** A change over HTTP applies to all nodes whose own files and environment do not set the option. */
  readonly clusterWide: boolean
  /**
   * @param text the value as an INI file has it
   * @throws Error whose message says what is allowed
   */
  parse(text: string): Value
  /**
   * Returns what is wrong with a text that `parse` accepts, because existing files may have it; null for a good one.
   * HTTP refuses such a text, and a node that has it from a file logs a warning.
   */
  defect(text: string): string | null
}

export interface OptionFacts<Value> {
  readonly default: Value
  readonly effect: 'live' | 'restart'
  readonly help: string
  readonly secret?: boolean
  readonly filesOnly?: boolean
  readonly clusterWide?: boolean
  readonly defect?: (text: string) => string | null
}

/** @param name `section/key` */
export function option<Value>(
  name: string, type: OptionType<Value>, facts: OptionFacts<NoInfer<Value>>,
): Option<Value> {
  const slash = name.indexOf('/')
  return {
    name, section: name.slice(0, slash), key: name.slice(slash + 1),
    kind: type.kind, unit: type.unit,
    default: facts.default, defaultText: type.format(facts.default) || null,
    help: facts.help, effect: facts.effect, secret: facts.secret ?? false,
    filesOnly: facts.filesOnly ?? false, clusterWide: facts.clusterWide ?? false,
    parse: text => type.parse(text), defect: facts.defect ?? (() => null),
  }
}

/** Returns the same option with its value, and its default, converted to another form. */
export function converted<Value, Result>(declared: Option<Value>, convert: (value: Value) => Result): Option<Result> {
  return { ...declared, default: convert(declared.default), parse: text => convert(declared.parse(text)) }
}
