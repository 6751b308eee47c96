/** Describes failures of files and folders in one line for the person who started the command. */
import { StartError } from './flags.ts'

const causes: Readonly<Record<string, string>> = {
  EACCES: 'permission denied; give the user that runs this command access to it, or name another folder',
  EPERM: 'the operation is not permitted there; name another folder',
  ENOENT: 'a part of the path does not exist and cannot be created; name another folder',
  ENOTDIR: 'a part of the path is a file, not a folder; name another folder',
  EEXIST: 'a file of that name already exists; remove it, or name another folder',
  EISDIR: 'it is a folder, not a file; remove it',
  EROFS: 'the file system is read-only; name another folder',
  ENOSPC: 'the disk is full; free some space',
  EDQUOT: 'the disk quota is used up; free some space',
}

/**
 * @param what a clause that says what failed and contains the path
 * @returns the error to throw: `error` itself when it already is a StartError
 */
export function folderProblem(error: unknown, what: string): StartError {
  if (error instanceof StartError) return error
  const { code, message, path } = error as NodeJS.ErrnoException
  const at = path === undefined || what.includes(path) ? '' : ` (${path})`
  return new StartError(`${what}${at}: ${causes[code ?? ''] ?? message}`, { cause: error })
}
