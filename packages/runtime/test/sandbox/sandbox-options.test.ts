import { expect } from 'chai'
import { parseValues } from '@sectional/core/options'
import { sandboxDeclarations, sandboxLimits } from '../../src/sandbox/sandbox-options.ts'

const limitsOf = (settings: Readonly<Record<string, string>>): ReturnType<typeof sandboxLimits> =>
  sandboxLimits(parseValues(sandboxDeclarations, (section, key) => settings[`${section}/${key}`]), 6)

describe('the options of the sandbox', () => {
  it('are one child process for each core, and mebibytes of memory, unless they are set', () => {
    expect(limitsOf({})).to.include({ callMs: 5000, childrenMax: 6, heapMiB: 64, residentMiB: 512 })
  })

  it('are limits in the units of the sandbox', () => {
    expect(limitsOf({
      'couchdb/os_process_timeout': '70', 'query_server_config/os_process_limit': '3',
      'query_server_config/os_process_memory_bytes': String(100 * 2 ** 20),
      'query_server_config/heap_bytes': String(10 * 2 ** 20), 'query_server_config/database_calls': '9',
    })).to.include({ callMs: 70, childrenMax: 3, heapMiB: 10, residentMiB: 100, databaseCallsMax: 9 })
  })
})
