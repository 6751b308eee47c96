import type { ProcessUsage } from './child/process-usage.ts'
import type { SandboxLimits } from './sandbox.ts'

/** How many milliseconds a child may take to start. */
const startMs = 15_000
/**
 * A call that exceeds its time has this many times the time, as long as its child gets little CPU time: on a busy
 * machine the call may not be the cause.
 */
const busyMachineFactor = 4
/**
 * A child that has used no CPU time for this many milliseconds is not kept from running: even a busy machine runs each
 * process more often. V8 leaves it asleep after some failures to allocate memory.
 */
const asleepMs = 2000
/**
 * A call whose child has used this many times its time of CPU is ended, whatever its age: ages begin anew when the node
 * was blocked, which functions may cause. Threads of V8 use CPU time beside the function.
 */
const cpuFactor = 2

/** A child at one moment. */
export interface ChildMoment {
  /** `starting` until the child can take a message, then `idle` or `busy`, finally `ending`: it was killed. */
  readonly state: 'starting' | 'idle' | 'busy' | 'ending'
  /** Milliseconds since the state began, or since the node ran again after it was suspended or blocked. */
  readonly ageMs: number
  /** What the process uses; null when the system does not report it. */
  readonly usage: ProcessUsage | null
  /** CPU time in milliseconds since the state began; null when it is not known. */
  readonly cpuMs: number | null
  /** Milliseconds in this state since its CPU time last grew; 0 when it is not known. */
  readonly sleptMs: number
}

/**
 * Decides whether a child must be killed.
 *
 * @returns the reason; `closed`: no call is to blame; null: the child may go on
 */
export function exceededLimit(
  { state, ageMs, usage, cpuMs, sleptMs }: ChildMoment, { callMs, residentMiB }: SandboxLimits,
): 'timeout' | 'memory' | 'closed' | null {
  const resident = usage?.residentMiB ?? 0
  switch (state) {
    case 'starting': return ageMs > startMs ? 'timeout' : null
    case 'busy': {
      const hadTime = cpuMs === null || cpuMs >= callMs / 2 || sleptMs > asleepMs || ageMs > busyMachineFactor * callMs
      if ((ageMs > callMs && hadTime) || (cpuMs ?? 0) > cpuFactor * callMs) return 'timeout'
      return resident > residentMiB ? 'memory' : null
    }
    // An idle child that keeps much memory is replaced before the next call pays for it.
    case 'idle': return resident > residentMiB / 2 ? 'closed' : null
    case 'ending': return null
  }
}
