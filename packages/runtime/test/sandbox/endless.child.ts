// Runs a function that never returns, with a time limit that does not end it in time (see sandbox-isolates.test.ts).
import { functionOf, openSandbox } from './test-sandbox.ts'

const { sandbox } = openSandbox({ callMs: 60_000 })
await sandbox.call(functionOf('() => 1'), ['[]'])
const endless = sandbox.call(functionOf('() => { for (;;); }'), ['[]'])
// The message is sent at the end of this turn.
setTimeout(() => process.stdout.write('running'), 100)
await endless
