import { pbkdf2 } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { promisify } from 'node:util'
import { createContext, Script } from 'node:vm'
import type { Machine, PasswordDigest } from './machine.ts'

const derive = promisify(pbkdf2)
const sandbox = createContext({ pattern: /^/, text: '' }) as { pattern: RegExp; text: string }
const patternTest = new Script('pattern.test(text)')
const descriptorFolder = '/proc/self/fd'
const limitsFile = '/proc/self/limits'
/** How often the event loop's delay is sampled: 20 timers a second. */
const sampleMs = 50

/** This process and its machine. */
export class RealMachine implements Machine {
  readonly #delay: ReturnType<typeof monitorEventLoopDelay> = monitorEventLoopDelay({ resolution: sampleMs })

  constructor() {
    this.#delay.enable()
  }

  uptime(): number {
    return process.uptime()
  }

  memory(): ReturnType<Machine['memory']> {
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
    return { residentBytes: rss, heapUsedBytes: heapUsed, heapTotalBytes: heapTotal, externalBytes: external }
  }

  openFiles(): number | null {
    try {
      // Reading the folder takes a descriptor itself.
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

  /** Stops the sampling. */
  close(): void {
    this.#delay.disable()
  }
}

/** Node raises its soft limit as it starts, so that only the running process knows it. */
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

/** Node measures from tick to tick in nanoseconds: the interval itself is no delay. */
function seconds(nanoseconds: number): number {
  return Math.max(0, nanoseconds / 1e9 - sampleMs / 1000)
}
