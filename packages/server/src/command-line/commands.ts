/** Selects the command, and reports its errors to the person who typed it. */
import { ConfigurationError } from '../configuration/settings.ts'
import { clusterUsage, runCluster } from './cluster-command.ts'
import { StartError, UsageError } from './flags.ts'
import { folderProblem } from './folder-problem.ts'
import { nodeUsage, runNode } from './node-command.ts'
import { packageVersion } from './package-files.ts'
import { recoverUsage, runRecover } from './recover-command.ts'

export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
} as const

const usage = `Usage: sectional COMMAND [FLAGS]

${nodeUsage}

${clusterUsage}

${recoverUsage}

  sectional --help, sectional --version`

/** Resolves with the exit status when the command has ended. */
export async function runCommand(
  words: readonly string[], { env }: { readonly env: Readonly<Record<string, string | undefined>> },
): Promise<number> {
  const [command, ...flags] = words
  try {
    if (flags.includes('--help') || command === '--help' || command === 'help') {
      console.log(usage)
      return exitCodes.ok
    }
    switch (command) {
      case 'node': return await runNode(flags, env)
      case 'cluster': return await runCluster(flags)
      case 'recover': return await runRecover(flags, env)
      case '--version':
        console.log(packageVersion())
        return exitCodes.ok
      case undefined: throw new UsageError('a command is missing')
      default: throw new UsageError(`unknown command "${command}"`)
    }
  } catch (error) {
    if (error instanceof UsageError) {
      console.error(`sectional: ${error.message}\n\n${usage}`)
      return exitCodes.usage
    }
    console.error(`sectional: ${reasonOf(error as Error)}`)
    return exitCodes.failed
  }
}

/** Returns the message of an expected error, and the stack of an unexpected one. */
function reasonOf(error: Error): string {
  if (error instanceof ConfigurationError || error instanceof StartError) return error.message
  return (error as NodeJS.ErrnoException).path === undefined
    ? error.stack ?? error.message
    : folderProblem(error, 'the command failed').message
}
