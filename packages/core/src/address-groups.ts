/**
 * Values that belong to clients, grouped by client address, for limits on their total number. When the limit is
 * reached, `takeFromLargest` removes the oldest value of the address that has the most, so a client with many values
 * cannot displace those of others.
 */
export class AddressGroups<Key, Value> {
  #size = 0
  /** By address, oldest first. No inner map is empty. */
  readonly #groups = new Map<string, Map<Key, Value>>()

  get size(): number {
    return this.#size
  }

  get(address: string, key: Key): Value | undefined {
    return this.#groups.get(address)?.get(key)
  }

  /** Adds the value as the newest one of the address. The address must not have the key yet. */
  add(address: string, key: Key, value: Value): void {
    const group = this.#groups.get(address)
    if (group === undefined) this.#groups.set(address, new Map([[key, value]]))
    else group.set(key, value)
    this.#size++
  }

  /** Does nothing when the address does not have the key. */
  delete(address: string, key: Key): void {
    const group = this.#groups.get(address)
    if (group?.delete(key) !== true) return
    if (group.size === 0) this.#groups.delete(address)
    this.#size--
  }

  /** Removes and returns the oldest value of the address with the most; undefined when there is none. */
  takeFromLargest(): Value | undefined {
    let largest: readonly [string, ReadonlyMap<Key, Value>] | undefined
    for (const entry of this.#groups) if (largest === undefined || entry[1].size > largest[1].size) largest = entry
    if (largest === undefined) return undefined
    const [address, group] = largest
    const [key, value] = group.entries().next().value!
    this.delete(address, key)
    return value
  }
}
