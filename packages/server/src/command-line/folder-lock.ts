/** A lock of a data folder, so that it has only one supervisor. */
import { LevelStorage, StorageError } from '@sectional/runtime'
import { StartError } from './flags.ts'

export const lockName = 'lock'

export interface FolderLock { release(): Promise<void> }

/**
 * Takes the lock of an existing folder. The operating system releases it when the process ends for any reason. It is
 * the lock of an empty LevelDB store in the folder, because Node.js has no function to lock a file.
 *
 * @throws StartError when another process holds the lock
 */
export async function lockFolder(folder: string): Promise<FolderLock> {
  try {
    const store = await new LevelStorage({ directory: folder }).open(lockName)
    return { release: () => store.close() }
  } catch (error) {
    if (error instanceof StorageError && error.code === 'locked') {
      throw new StartError(`${folder} is in use by a running cluster: stop that one first (Ctrl-C where it runs), `
        + 'or choose another folder with --data')
    }
    throw new StartError(`${folder} cannot be locked: ${(error as Error).message}`, { cause: error })
  }
}
