import type { Clock } from '../../src/clock/clock.ts'
import { RealClock } from '../../src/clock/clock-real.ts'
import { MemoryLog } from '../../src/log/log-memory.ts'
import { PrometheusMetrics } from '../../src/metrics/metrics-prom.ts'
import { defaultSandboxLimits, type SandboxFunction, type SandboxLimits } from '../../src/sandbox/sandbox.ts'
import { IsolateSandbox } from '../../src/sandbox/sandbox-isolates.ts'

/**
 * Opens a sandbox of real child processes. It starts none before the first call.
 *
 * @param library the module that the children load as isolated-vm
 */
export function openSandbox(limits: Partial<SandboxLimits> = {}, library?: string, clock: Clock = new RealClock()): {
  readonly sandbox: IsolateSandbox
  readonly log: MemoryLog
  readonly metrics: PrometheusMetrics
} {
  const log = new MemoryLog()
  const metrics = new PrometheusMetrics()
  const sandbox = new IsolateSandbox({
    clock, log, metrics, library, limits: { ...defaultSandboxLimits, childrenMax: 2, ...limits },
  })
  return { sandbox, log, metrics }
}

export function functionOf(source: string, database = 'db', designDocument = '_design/d'): SandboxFunction {
  return { database, designDocument, modules: '{}', source }
}
