/** Remembers from which addresses which names have logged in. Wrong passwords of others do not stand against them. */
import { clientNetwork } from '@sectional/core'
import { BoundedMap } from './bounded-map.ts'

export class KnownClients {
  /** Addresses and names, as one text. */
  readonly #logins: BoundedMap<string, true>

  /** @param entriesMax number of pairs of address and name that are remembered */
  constructor(entriesMax: number) {
    this.#logins = new BoundedMap(entriesMax)
  }

  has(address: string, name: string): boolean {
    return this.#logins.get(keyOf(address, name)) ?? false
  }

  /** Call this when a login has succeeded, with its second factor if it needs one. */
  add(address: string, name: string): void {
    this.#logins.set(keyOf(address, name), true)
  }

  /** Like `add`, for a login whose password was checked before. It does nothing where `countedAs` stays the same. */
  addCached(address: string, name: string): void {
    if (clientNetwork(address) !== address && !this.has(address, name)) this.add(address, name)
  }

  /**
   * Returns for whom wrong passwords are counted: the network of the address (`clientNetwork`), so that a client cannot
   * guess on from another address of it, but the address alone for a name that has logged in from there.
   */
  countedAs(address: string, name: string): string {
    const network = clientNetwork(address)
    return network !== address && this.has(address, name) ? address : network
  }
}

function keyOf(address: string, name: string): string {
  return JSON.stringify([address, name])
}
