/** `scripts/torture`: attacks a cluster of real processes and judges what its clients saw. */
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { hasNamespaces, runInNamespaces } from '../src/private-namespaces.ts'
import { judgeFile, printFindings } from './history-file.ts'
import { faultKinds } from './nemesis.ts'
import { torture } from './torture.ts'

const usage = `scripts/torture --minutes N [--seed S]   clients and faults for N minutes, then rest, reads and a verdict
scripts/torture ... --without FAULT      leaves out a kind of fault; may be repeated
                                         (${faultKinds.join(', ')})
scripts/torture ... --loopback           nodes on 127.0.0.1 with proxies between them and limits of file sizes; the
                                         default where this process may not create network namespaces and mount
                                         disks, which lose packets and become full
scripts/torture --judge FILE             judges the recorded history of an earlier run again
The seed draws faults and requests. Real processes are not deterministic: a seed does not repeat a run exactly.
exit status: 0 nothing found, 1 a guarantee was violated, 2 wrong usage, 3 the run did not end in time`

const thisFile = fileURLToPath(import.meta.url)
/** The run ends within this time after the last fault, or it is ended. */
const restMsMax = 5 * 60_000

function print(line: string): void {
  console.log(line)
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options: {
    minutes: { type: 'string' }, seed: { type: 'string' }, judge: { type: 'string' },
    without: { type: 'string', multiple: true }, loopback: { type: 'boolean' }, inside: { type: 'boolean' },
    help: { type: 'boolean' },
  } })
  const without = faultKinds.filter(kind => values.without?.includes(kind))
  if (values.judge !== undefined) return judgeFile(values.judge, print).length === 0 ? 0 : 1
  const minutes = Number(values.minutes)
  const seed = values.seed === undefined ? Math.floor(Date.now() / 1000) % 1_000_000_000 : Number(values.seed)
  const isKnown = without.length === new Set(values.without).size
  if (values.help === true || !(minutes > 0) || !Number.isInteger(seed) || !isKnown) {
    print(usage)
    return values.help === true ? 0 : 2
  }
  if (values.inside !== true && values.loopback !== true && hasNamespaces()) {
    return runInNamespaces([process.execPath, ...process.execArgv, thisFile, ...process.argv.slice(2), '--inside'])
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))
  const ms = minutes * 60_000
  setTimeout(() => {
    print(`the run did not end within ${restMsMax / 60_000} minutes of the last fault`)
    process.exit(3)
  }, ms + restMsMax).unref()
  const namespaces = values.inside === true
  print(`seed ${seed}, ${namespaces ? 'nodes in network namespaces, with disks of their own' : 'nodes on loopback'}`)
  const { findings, folder } = await torture({ seed, ms, faults: true, without, namespaces, print })
  if (folder === undefined) {
    print('nothing found')
    return 0
  }
  printFindings(findings, print)
  print(`the history, the logs and the data of the nodes are in ${folder}`)
  print(`judge the history again: scripts/torture --judge ${folder}/history.json`)
  return 1
}

process.exitCode = await main()
