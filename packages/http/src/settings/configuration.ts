/**
 * The node's configuration as the HTTP layer reads and changes it (`/_node/{name}/_config`). The server
 * package implements it; values are text, as in the files. Declared here by its consumer.
 */

export type ConfigurationSections = Readonly<Record<string, Readonly<Record<string, string>>>>

export interface Configuration {
  /** Every section with every value in effect, defaults included. Names keep their case. */
  sections(): ConfigurationSections
  /** The value in effect (the default when nothing else is set), or undefined. Cheap: read on each request. */
  get(section: string, key: string): string | undefined
  /**
   * Takes effect for the next request. `persist: false`: in memory only, forgotten by `reload`.
   * Section `admins` receives password hashes only (`authentication/admin-password` makes them).
   */
  set(section: string, key: string, value: string, options: { readonly persist: boolean }): Promise<void>
  /** Back to the default, or to nothing. */
  delete(section: string, key: string, options: { readonly persist: boolean }): Promise<void>
  /** Reads the files again. */
  reload(): Promise<void>
  /** Calls back after each change of values in effect. Returns an unsubscribe function. */
  onChange(listener: () => void): () => void
}
