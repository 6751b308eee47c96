import { MemorySandbox } from '../../src/sandbox/sandbox-memory.ts'
import { sandboxSuite } from '../../src/sandbox/sandbox-suite.ts'
import { openSandbox } from './test-sandbox.ts'

sandboxSuite('in memory', { open: () => new MemorySandbox(), close: () => {} })

const opened = openSandbox()
sandboxSuite('in child processes', { open: () => opened.sandbox, close: () => opened.sandbox.close() })
