/** The configuration file of each simulated node. */
import { createHmac } from 'node:crypto'

export interface NodePlace {
  readonly number: number
  readonly name: string
  /** Name of the node's machine on the simulated network. */
  readonly host: string
  readonly seeds: readonly string[]
  readonly settings: Readonly<Record<string, Readonly<Record<string, string>>>>
}

export const clusterSecret = 'what all simulated nodes know, long enough'
const password = 'simulated'
const salt = 'salt'
/** Uses one round of PBKDF2 (RFC 8018), which is a single HMAC, so that password checks cost almost nothing. */
const derivedKey = createHmac('sha256', password).update(salt).update(Uint8Array.of(0, 0, 0, 1)).digest('hex')
const passwordHash = `-pbkdf2:sha256-${derivedKey},${salt},1`

export const clusterPort = 15984

export const administrator = {
  authorization: `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`, accept: 'application/json',
}

export function nodeSettings({ name, host, seeds, settings }: NodePlace): string {
  const sections: Record<string, Record<string, string>> = {
    node: { name },
    cluster: {
      bind_address: host, port: String(clusterPort), advertised_address: `${host}:${clusterPort}`,
      seedlist: seeds.map(seed => `${seed}:${clusterPort}`).join(','), secret: clusterSecret,
    },
    admins: { admin: passwordHash },
    log: { requests: 'none' },
  }
  for (const [section, keys] of Object.entries(settings)) sections[section] = { ...sections[section], ...keys }
  return Object.entries(sections).map(([section, keys]) =>
    `[${section}]\n${Object.entries(keys).map(([key, value]) => `${key} = ${value}\n`).join('')}`).join('\n')
}
