import type { ProcessUsage } from './child/process-usage.ts'
import type { SandboxLimits } from './sandbox.ts'

/** How many milliseconds a child may take to start. */
const startMs = 15_000
/**
 * A call that exceeds its time has this many times the time, as long as its child gets little CPU time: on a busy
 * machine the call may not be the cause.
 */
const busyMachineFactor = 4

/** A child at one moment. */
export interface ChildMoment {
  /** `starting` until the child can take a message, then `idle` or `busy`, finally `ending`: it was killed. */
  readonly state: 'starting' | 'idle' | 'busy' | 'ending'
  /** Milliseconds since the state began. */
  readonly ageMs: number
  /** What the process uses; null when the system does not report it. */
  readonly usage: ProcessUsage | null
  /** CPU time in milliseconds since the state began; null when it is not known. */
  readonly cpuMs: number | null
}

/**
 * Decides whether a child must be killed.
 *
 * @returns the reason; `closed`: no call is to blame; null: the child may go on
 */
export function exceededLimit(
  { state, ageMs, usage, cpuMs }: ChildMoment, { callMs, residentMiB }: SandboxLimits,
): 'timeout' | 'memory' | 'closed' | null {
  const resident = usage?.residentMiB ?? 0
  switch (state) {
    case 'starting': return ageMs > startMs ? 'timeout' : null
    case 'busy': {
      const hadTime = cpuMs === null || cpuMs >= callMs / 2 || ageMs > busyMachineFactor * callMs
      if (ageMs > callMs && hadTime) return 'timeout'
      return resident > residentMiB ? 'memory' : null
    }
    // An idle child that keeps much memory is replaced before the next call pays for it.
    case 'idle': return resident > residentMiB / 2 ? 'closed' : null
    case 'ending': return null
  }
}
