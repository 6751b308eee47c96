import { readFileSync } from 'node:fs'

export interface ProcessUsage {
  /** CPU time in milliseconds that all threads have used since the start of the process. */
  readonly cpuMs: number
  readonly residentMiB: number
}

/** The unit of times in /proc: Linux has 100 ticks a second on all machines on which Node.js runs. */
const tickMs = 10

/** Returns what a process uses, or null when the system has no /proc folder or the process has ended. */
export function processUsage(pid: number | undefined): ProcessUsage | null {
  try {
    // The second field, the program's name in parentheses, may contain spaces. Fields 14 and 15 are the CPU times.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /, '').split(' ')
    const resident = /^VmRSS:\s*(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))
    return { cpuMs: (Number(fields[11]) + Number(fields[12])) * tickMs, residentMiB: Number(resident?.[1] ?? 0) / 1024 }
  } catch {
    return null
  }
}
