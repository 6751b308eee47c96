/**
 * The node's configuration as the HTTP layer reads and changes it (`/_node/{name}/_config`). The server package
 * implements this interface. Values are text, as in the configuration files.
 */

export type ConfigurationSections = Readonly<Record<string, Readonly<Record<string, string>>>>

export interface Configuration {
  /** Returns every section with all effective values, including defaults. The case of names is kept. */
  sections(): ConfigurationSections
  /**
   * Returns the effective value, which may be the default, or undefined. It is cheap enough to be called for each
   * request.
   */
  get(section: string, key: string): string | undefined
  /** Whether the value is a secret, which the API accepts and never shows. */
  isSecret(section: string, key: string): boolean
  /** Whether a changed value may be written to the log and to the audit stream. It may not be while it is a secret. */
  isLogged(section: string, key: string): boolean
  /**
   * Whether a persisted change of the setting applies to all nodes of the cluster. It does for some settings, on a node
   * whose own files and environment do not set them.
   */
  isShared(section: string, key: string): boolean
  /**
   * Sets a value, which takes effect for the next request. With `persist: false` it is kept in memory only, and
   * `reload` discards it. Section `admins` accepts password hashes only (`authentication/admin-password` creates them).
   */
  set(section: string, key: string, value: string, options: { readonly persist: boolean }): Promise<void>
  /**
   * Returns the value that a persistent `delete` removes from the files of the node, so that it does not come back. It
   * need not be in effect.
   */
  removable(section: string, key: string): Promise<string | undefined>
  /** Removes a value. The default applies again, if there is one. */
  delete(section: string, key: string, options: { readonly persist: boolean }): Promise<void>
  /**
   * Reads the configuration files again. Returns the names (`section/key`) of options that the files have changed, but
   * that only a restart changes.
   */
  reload(): Promise<readonly string[]>
  /** Calls `listener` after each change of effective values. Returns a function that unsubscribes it. */
  onChange(listener: () => void): () => void
}
