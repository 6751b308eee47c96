/** Which databases hold data of the server, such as passwords (docs/reference/databases.md#put-db). */
const systemName = /^_|\/_(?:users|replicator)$/

/** Whether a name is that of a system database. `/_users` or `/_replicator` at its end makes it one too. */
export function isSystemName(name: string): boolean {
  return systemName.test(name)
}
