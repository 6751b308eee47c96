import { pbkdf2 } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { promisify } from 'node:util'
import { createContext, Script } from 'node:vm'
import type { Machine, PasswordDigest } from './machine.ts'

const derive = promisify(pbkdf2)
const sandbox = createContext({ pattern: /^/, text: '' }) as { pattern: RegExp; text: string }
const patternTest = new Script('pattern.test(text)')
const descriptorFolder = '/proc/self/fd'
const limitsFile = '/proc/self/limits'
/** The interval in milliseconds at which the event loop's delay is sampled. */
const sampleMs = 50

/** Information about this process and its machine. */
export class RealMachine implements Machine {
  readonly #delay: ReturnType<typeof monitorEventLoopDelay> = monitorEventLoopDelay({ resolution: sampleMs })

  constructor() {
    this.#delay.enable()
  }

  uptime(): number {
    return process.uptime()
  }

  cores(): number {
    return availableParallelism()
  }

  memory(): ReturnType<Machine['memory']> {
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
    return { residentBytes: rss, heapUsedBytes: heapUsed, heapTotalBytes: heapTotal, externalBytes: external }
  }

  openFiles(): number | null {
    try {
      // Reading the folder opens a descriptor itself, which is not counted.
      return readdirSync(descriptorFolder).length - 1
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  }

  openFilesMax(): number | null {
    const limit = softLimit()
    return typeof limit === 'number' && limit > 0 ? limit : null
  }

  eventLoopDelay(): { readonly mean: number; readonly p99: number } {
    const delay = this.#delay
    const result = delay.count === 0
      ? { mean: 0, p99: 0 }
      : { mean: seconds(delay.mean), p99: seconds(delay.percentile(99)) }
    delay.reset()
    return result
  }

  versions(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      Object.entries(process.versions).filter((entry): entry is [string, string] => entry[1] !== undefined),
    )
  }

  testInTime(pattern: RegExp, text: string, msMax: number): boolean | null {
    sandbox.pattern = pattern
    sandbox.text = text
    try {
      return patternTest.runInContext(sandbox, { timeout: msMax }) as boolean
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return null
      throw error
    } finally {
      sandbox.text = ''
    }
  }

  async pbkdf2(
    password: string, salt: string, iterations: number, keyBytes: number, digest: PasswordDigest,
  ): Promise<Uint8Array> {
    return await derive(password, salt, iterations, keyBytes, digest)
  }

  /** Stops sampling the event loop's delay. */
  close(): void {
    this.#delay.disable()
  }
}

/**
 * Returns the process's limit of open files. Node raises its soft limit at startup, so it must be read from the running
 * process.
 */
function softLimit(): unknown {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync(limitsFile, 'utf8'))?.[1])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return (process.report.getReport() as {
      readonly userLimits?: { readonly open_files?: { readonly soft?: unknown } }
    }).userLimits?.open_files?.soft
  }
}

/**
 * Converts a sampled interval in nanoseconds into seconds of delay. Node measures from tick to tick, so the sampling
 * interval itself is subtracted.
 */
function seconds(nanoseconds: number): number {
  return Math.max(0, nanoseconds / 1e9 - sampleMs / 1000)
}
