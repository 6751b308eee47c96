/** Files of whole lines for programs that read logs. They are not for data: nothing is synced to the disk. */
export interface AppendFiles {
  /**
   * Appends lines to a file, and creates the file when it is missing, readable by its owner only. Every call opens the
   * path anew, so that the lines after a rename (by logrotate, for instance) go to a new file. If the file ends within
   * a line, which an earlier failure can cause, the new lines begin on a line of their own.
   *
   * @param path relative paths refer to the folder of the node's configuration
   * @param lines each with its line feed
   * @throws Error when the path is a named pipe, or when the lines cannot be written; some of them may have been
   */
  append(path: string, lines: string): Promise<void>
}
