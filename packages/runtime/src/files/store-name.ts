/** @throws TypeError unless the name is `[a-z0-9-]+` of at most 64 characters */
export function checkStoreName(name: string): void {
  if (!/^[a-z0-9-]{1,64}$/.test(name)) {
    throw new TypeError(`a store name has 1 to 64 characters of a-z, 0-9 and "-": ${JSON.stringify(name)}`)
  }
}
