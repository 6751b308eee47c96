/** How one option is declared: its type checks the text and gives the value. */

export interface Option<Value> {
  readonly kind: string
  /** null: unset unless somebody sets it. */
  readonly default: string | null
  readonly help: string
  /** `restart`: read when the node starts; `live`: acts on the next request after a change. */
  readonly effect: 'live' | 'restart'
  /** Shown as `****` in logs and in the generated documents. */
  readonly secret?: boolean
  /** @throws Error that says what is allowed */
  parse(text: string): Value
}

/** An option that only others read through the live configuration, and that is unset by default. */
export function unsetOption(option: Omit<OptionText, 'default'>): Option<string | undefined> {
  return { kind: 'text', default: null, ...option, parse: text => text }
}

interface OptionText { readonly default: string; readonly help: string; readonly effect: 'live' | 'restart'; readonly secret?: boolean }

export function textOption(option: OptionText): Option<string> {
  return { kind: 'text', ...option, parse: text => text }
}

export function flagOption(option: OptionText): Option<boolean> {
  return {
    kind: 'true or false',
    ...option,
    parse: text => {
      if (text !== 'true' && text !== 'false') throw new Error('only true and false are allowed')
      return text === 'true'
    },
  }
}

/** An integer within bounds; `infinity` only where `infinite` is set. */
export function integerOption(option: OptionText & { readonly min: number; readonly max: number; readonly infinite?: boolean }): Option<number> {
  const { min, max, infinite, ...text } = option
  const kind = `integer from ${min} to ${max}${infinite ? ', or infinity' : ''}`
  return {
    kind,
    ...text,
    parse: value => {
      if (infinite && value === 'infinity') return Infinity
      const number = Number(value)
      if (!/^-?\d{1,15}$/.test(value) || number < min || number > max) throw new Error(`only an ${kind} is allowed`)
      return number
    },
  }
}

export function choiceOption<Choice extends string>(option: OptionText & { readonly choices: readonly Choice[] }): Option<Choice> {
  const { choices, ...text } = option
  return {
    kind: choices.join(', '),
    ...text,
    parse: value => {
      const choice = choices.find(candidate => candidate === value)
      if (choice === undefined) throw new Error(`only ${choices.join(', ')} are allowed`)
      return choice
    },
  }
}

/** Comma separated; empty text is an empty list. */
export function listOption(option: OptionText): Option<readonly string[]> {
  return { kind: 'comma separated list', ...option, parse: text => text.split(',').map(item => item.trim()).filter(item => item !== '') }
}

/** `host:port`, or empty. */
export function addressOption(option: OptionText): Option<Address | null> {
  return { kind: 'host:port', ...option, parse: text => text === '' ? null : parseAddress(text) }
}

export interface Address { readonly host: string; readonly port: number }

/** @throws Error that says what is allowed */
export function parseAddress(text: string): Address {
  const [, host, portText] = /^\[?([^\]]+?)\]?:(\d{1,5})$/.exec(text) ?? []
  const port = Number(portText)
  if (host === undefined || port > 65535) throw new Error('only host:port with a port up to 65535 is allowed')
  return { host, port }
}

export function formatAddress(address: Address): string {
  return `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`
}
