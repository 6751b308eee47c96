/** Declares the limits of functions of design documents that an administrator can set. */
import { converted, integer, option } from '@sectional/core/options'
import type { OptionValues } from '@sectional/core/options'
import { defaultSandboxLimits, type SandboxLimits } from './sandbox.ts'

const mebibyte = 1024 * 1024
const toMiB = (bytes: number): number => Math.floor(bytes / mebibyte)

export const sandboxDeclarations = {
  callMs: option('couchdb/os_process_timeout', integer({ min: 1, max: 3_600_000, unit: 'milliseconds' }), {
    default: defaultSandboxLimits.callMs,
    effect: 'restart',
    help: 'Time that one call of a function of a design document may take. On a busy machine a call may take up to '
      + 'four times as long.',
  }),

  /** 0 stands for one process for each core. */
  childrenMax: option('query_server_config/os_process_limit', integer({ min: 0, max: 1024 }), {
    default: 0,
    effect: 'restart',
    help: 'Maximum number of child processes that run functions of design documents. They are started when functions '
      + 'are called. One database may use half of them, but at least one. One more is started when functions of other '
      + 'databases occupy all of them while a database waits whose functions are quick, and one more for the functions '
      + 'that ended a process in the last minute. 0: one for each core.',
  }),

  residentMiB: converted(option('query_server_config/os_process_memory_bytes',
    integer({ min: 64 * mebibyte, max: 2 ** 40, unit: 'bytes' }), {
      default: defaultSandboxLimits.residentMiB * mebibyte,
      effect: 'restart',
      help: 'Memory of one of these child processes. A process that uses more is ended; it is measured on Linux only.',
    }), toMiB),

  heapMiB: converted(option('query_server_config/heap_bytes',
    integer({ min: 8 * mebibyte, max: 2 ** 36, unit: 'bytes' }), {
      default: defaultSandboxLimits.heapMiB * mebibyte,
      effect: 'restart',
      help: 'Memory of the JavaScript objects of one design document in a child process.',
    }), toMiB),

  databaseCallsMax: option('query_server_config/database_calls', integer({ min: 1, max: 1_000_000 }), {
    default: defaultSandboxLimits.databaseCallsMax,
    effect: 'restart',
    help: 'Maximum number of calls of functions of one database that wait or run on this node. Further calls fail, and '
      + 'can be repeated later.',
  }),
}

/**
 * Returns the limits of a node's sandbox.
 *
 * @param cores the number of processor cores that the process may use
 */
export function sandboxLimits(options: OptionValues<typeof sandboxDeclarations>, cores: number): SandboxLimits {
  return { ...defaultSandboxLimits, ...options, childrenMax: options.childrenMax === 0 ? cores : options.childrenMax }
}
