/** The types of options. A type checks the text of a setting and converts it to a value. */

export interface OptionType<Value> {
  /** The values that are allowed, in words. */
  readonly kind: string
  readonly unit?: string
  /** @throws Error whose message says what is allowed */
  parse(text: string): Value
  /** The text that `parse` turns into this value. null: the option is unset. */
  format(value: Value): string | null
}

export const text: OptionType<string> = { kind: 'text', parse: given => given, format: value => value }

/** Text. The value is undefined while the option is unset. */
export const optionalText: OptionType<string | undefined> = {
  kind: 'text',
  parse: given => given,
  format: value => value ?? null,
}

export const flag: OptionType<boolean> = {
  kind: 'true or false',
  parse: given => {
    if (given !== 'true' && given !== 'false') throw new Error('only true and false are allowed')
    return given === 'true'
  },
  format: String,
}

/** Items separated by commas; empty text is an empty list. */
export const list: OptionType<readonly string[]> = {
  kind: 'comma separated list',
  parse: given => given.split(',').map(item => item.trim()).filter(item => item !== ''),
  format: items => items.join(', '),
}

export interface IntegerLimits {
  readonly min: number
  readonly max: number
  /** Also allow the text `infinity`, for the value Infinity. */
  readonly infinite?: boolean
  /** For instance `milliseconds`. Counts have none. */
  readonly unit?: string
}

/** Integers within the limits, written with at most 15 digits, which doubles represent exactly. */
export function integer({ min, max, infinite = false, unit }: IntegerLimits): OptionType<number> {
  const kind = `integer from ${min} to ${max}${infinite ? ', or infinity' : ''}`
  return {
    kind,
    ...(unit !== undefined && { unit }),
    parse: given => {
      if (infinite && given === 'infinity') return Infinity
      const number = Number(given)
      if (!/^-?\d{1,15}$/.test(given) || number < min || number > max) throw new Error(`only an ${kind} is allowed`)
      return number
    },
    format: value => value === Infinity ? 'infinity' : String(value),
  }
}

export function choice<const Choice extends string>(...choices: readonly Choice[]): OptionType<Choice> {
  const kind = choices.join(', ')
  return {
    kind,
    parse: given => {
      const chosen = choices.find(candidate => candidate === given)
      if (chosen === undefined) throw new Error(`only ${kind} are allowed`)
      return chosen
    },
    format: value => value,
  }
}
