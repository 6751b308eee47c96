/** Runs one command of a step, and ends it when it takes too long. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

export interface CommandLimits {
  /** Milliseconds until the command is ended. */
  readonly totalMsMax: number
  /** Milliseconds without a line of output until the command is ended. */
  readonly silenceMsMax: number
}

export interface CommandResult {
  readonly lines: readonly string[]
  /** The exit status, or null if the command was ended by a signal. */
  readonly status: number | null
  /** Whether the command was ended because it exceeded a limit. */
  readonly hangs: boolean
}

/** Runs `node` with these arguments at low priority, in a process group of its own, and collects its output. */
export async function runNode(
  folder: string, nodeArguments: readonly string[], limits: CommandLimits, onLine?: (line: string) => void,
): Promise<CommandResult> {
  const child = spawn('nice', ['-n', '10', process.execPath, ...nodeArguments], {
    cwd: folder, detached: true, stdio: ['ignore', 'pipe', 'pipe'],
  })
  const end = (): void => {
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {
      // The whole group has ended.
    }
  }
  process.once('exit', end)
  let hangs = false
  const expire = (): void => {
    hangs = true
    end()
  }
  const total = setTimeout(expire, limits.totalMsMax)
  let silence = setTimeout(expire, limits.silenceMsMax)
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', line => {
      clearTimeout(silence)
      silence = setTimeout(expire, limits.silenceMsMax)
      lines.push(line)
      onLine?.(line)
    })
  }
  const closed = Promise.withResolvers<number | null>()
  child.on('close', status => closed.resolve(status))
  const status = await closed.promise
  clearTimeout(total)
  clearTimeout(silence)
  process.off('exit', end)
  end()
  return { lines, status, hangs }
}
