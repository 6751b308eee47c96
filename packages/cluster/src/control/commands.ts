/**
 * The complete set of changes that the replicated log carries. A malformed or unknown command is refused before it
 * enters the log. An unknown command inside the log means that this node runs older code than the leader; the node then
 * stops.
 */
import type { HashRange, PeerStart } from '@sectional/core'
import type { DatabaseSecurity } from './cluster-state.ts'
import type { DatabaseOption } from './control-plane.ts'
import { shardsPerDatabaseMax } from './database-options.ts'
import { unconfirmedStartsMax } from './node-start.ts'

/** Bytes of the JSON of one command. The largest commands carry a `_security` object. */
const maxCommandBytes = 1024 * 1024
const maxNameLength = 1024

export type CommandBody =
  | {
    readonly type: 'create-database'
    readonly name: string
    readonly incarnation: string
    readonly q: number
    readonly n: number
    readonly partitioned: boolean
    readonly seed: number
  }
  | { readonly type: 'delete-database'; readonly name: string; readonly incarnation: string }
  /**
   * `replaces` is the digest (`securityDigest`) of the security object from which this one was derived: when the
   * database has another one by now, nothing is changed. Absent when any object is to be replaced, and when an earlier
   * version proposed the command.
   */
  | {
    readonly type: 'set-security'
    readonly name: string
    readonly incarnation: string
    readonly security: DatabaseSecurity
    readonly replaces?: string
  }
  | {
    readonly type: 'set-database-option'
    readonly name: string
    readonly incarnation: string
    readonly option: DatabaseOption
  }
  | { readonly type: 'set-setting'; readonly section: string; readonly key: string; readonly value: string | null }
  /**
   * `fresh` means that the node's disk is empty: any data that a node of that name held before is lost. `start` is the
   * start of the process that asks; absent when an earlier version proposed the command.
   */
  | { readonly type: 'admit-node'; readonly node: string; readonly address: string; readonly zone: string
    | null; readonly fresh: boolean; readonly start?: PeerStart }
  /**
   * The node's disk is known to be lost. The node neither votes nor counts until it is admitted again. `outdated` means
   * that the node still runs, with an older copy of its data, and must give that copy up.
   */
  | { readonly type: 'forget-node'; readonly node: string; readonly outdated?: boolean }
  | { readonly type: 'remove-node'; readonly node: string }
  | { readonly type: 'replica-filled'; readonly incarnation: string; readonly range: HashRange; readonly node: string }
  /**
   * The replica has lost part of its documents and must be filled again. Refused when no other replica of the shard
   * counts.
   */
  | { readonly type: 'replica-damaged'; readonly incarnation: string; readonly range: HashRange; readonly node: string }
  /** Adds the replicas that these databases lack and for which there are nodes now. */
  | { readonly type: 'extend-databases'; readonly names: readonly string[] }

/** `id` is random. It ensures that a command that is proposed again after a lost answer is applied once. */
export type Command = CommandBody & { readonly id: string }

/** The result of a command in the state machine. */
export type CommandResult =
  | { readonly kind: 'done' }
  | { readonly kind: 'exists' }
  | { readonly kind: 'missing' }
  /** What the command would replace is not there any more; the proposer reads it again. */
  | { readonly kind: 'changed' }
  | { readonly kind: 'refused'; readonly reason: string }
  /** Another step must finish first; the node asks again. */
  | { readonly kind: 'later' }
  /** The node's data directory is an older copy that nothing depends on any more; the node may give it up. */
  | { readonly kind: 'outdated' }

export class CommandError extends Error {
  override readonly name = 'CommandError'
}

type Check = (value: unknown) => boolean

const text: Check = value => typeof value === 'string' && value.length > 0 && value.length <= maxNameLength
const digest: Check = value => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)
const flag: Check = value => typeof value === 'boolean'
const object: Check = value => typeof value === 'object' && value !== null && !Array.isArray(value)
const whole = (least: number, most: number): Check => value =>
  Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most
const orAbsent = (check: Check): Check => value => value === undefined || check(value)
const orNull = (check: Check): Check => value => value === null || check(value)
const anyText: Check = value => typeof value === 'string'
const names: Check = value => Array.isArray(value) && value.every(text)

const schemas: { readonly [Type in CommandBody['type']]: Readonly<Record<Exclude<keyof Extract<CommandBody, {
  type: Type
}>, 'type'>, Check>> } = {
  'create-database': {
    name: text, incarnation: text, q: whole(1, shardsPerDatabaseMax), n: whole(1, Number.MAX_SAFE_INTEGER),
    partitioned: flag, seed: whole(0, 0xffffffff),
  },
  'delete-database': { name: text, incarnation: text },
  'set-security': { name: text, incarnation: text, security: object, replaces: orAbsent(digest) },
  'set-database-option': { name: text, incarnation: text, option: isDatabaseOption },
  'set-setting': { section: text, key: text, value: orNull(anyText) },
  'admit-node': { node: text, address: isAddress, zone: orNull(text), fresh: flag, start: orAbsent(isStart) },
  'forget-node': { node: text, outdated: orAbsent(flag) },
  'remove-node': { node: text },
  'replica-filled': { incarnation: text, range: isRange, node: text },
  'replica-damaged': { incarnation: text, range: isRange, node: text },
  'extend-databases': { names },
}

/** @throws CommandError that names the invalid member of the command */
export function checkCommand(value: unknown): Command {
  if (!object(value)) throw new CommandError('a command is a JSON object')
  const members = value as Record<string, unknown>
  const type = members['type']
  const schema = typeof type === 'string' && Object.hasOwn(schemas, type)
    ? schemas[type as CommandBody['type']] as Readonly<Record<string, Check>>
    : undefined
  if (!schema) throw new CommandError(`unknown command ${JSON.stringify(type)?.slice(0, 100)}`)
  if (!text(members['id'])) throw new CommandError(`${String(type)}: bad id`)
  for (const [name, check] of Object.entries(schema)) {
    if (!check(members[name])) throw new CommandError(`${String(type)}: bad ${name}`)
  }
  const unknown = Object.keys(members).find(name => name !== 'type' && name !== 'id' && !Object.hasOwn(schema, name))
  if (unknown !== undefined) throw new CommandError(`${String(type)}: unknown member ${unknown.slice(0, 100)}`)
  return members as unknown as Command
}

/** @throws CommandError when the command is malformed or has more than `maxCommandBytes` bytes */
export function encodeCommand(command: Command): Uint8Array {
  const bytes = new TextEncoder().encode(JSON.stringify(checkCommand(command)))
  if (bytes.length > maxCommandBytes) {
    throw new CommandError(`${command.type}: ${bytes.length} bytes, the limit is ${maxCommandBytes}`)
  }
  return bytes
}

/** @throws CommandError when the command is malformed or unknown */
export function decodeCommand(bytes: Uint8Array): Command {
  return checkCommand(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)))
}

/** Returns whether the value is `host:port`, with an IPv6 host in brackets. */
export function isAddress(value: unknown): boolean {
  if (typeof value !== 'string' || value.length > maxNameLength) return false
  const match = /^(?:[^\s:\[\]]+|\[[0-9a-fA-F:.%\w]+\]):(\d{1,5})$/.exec(value)
  return match !== null && Number(match[1]) <= 65535
}

function isDatabaseOption(value: unknown): boolean {
  if (!object(value)) return false
  const [entry, ...more] = Object.entries(value as object)
  if (!entry || more.length > 0) return false
  const [name, content] = entry
  if (name === 'autoPurge') return object(content)
  return (name === 'revsLimit' || name === 'purgedInfosLimit') && whole(1, Number.MAX_SAFE_INTEGER)(content)
}

function isStart(value: unknown): boolean {
  if (!object(value)) return false
  const { ids, confirmed } = value as { ids?: unknown; confirmed?: unknown }
  return names(ids) && (ids as unknown[]).length <= unconfirmedStartsMax && whole(0, Number.MAX_SAFE_INTEGER)(confirmed)
    && Object.keys(value as object).length === 2
}

function isRange(value: unknown): boolean {
  if (!object(value)) return false
  const { begin, end } = value as { begin?: unknown; end?: unknown }
  return whole(0, 0xffffffff)(begin) && whole(0, 0xffffffff)(end) && (begin as number) <= (end as number)
    && Object.keys(value as object).length === 2
}
