/**
 * Measures how long a cluster of three nodes does not respond while one client sends it the most expensive bodies: the
 * longest wait for `/_up` on any node, the maximum memory, and the links that were lost. After a build: `node
 * bench/worst-bodies.ts [checkout=.] [text in the names of bodies]`. Each body is sent once; a node that does not
 * answer within a minute is given up. Linux only.
 */
import { sendWorst, SilenceWatch } from '../test-cluster/src/silence-watch.ts'
import { acceptedBodies, foundBodies, type WorstBody } from '../test-cluster/src/worst-bodies.ts'
import { auth, MeasuredCluster } from './measured-cluster.ts'
import { residentMiB } from './measured-process.ts'

const [checkout, text = ''] = process.argv.slice(2)

async function measure(worst: WorstBody): Promise<void> {
  const cluster = await MeasuredCluster.start(3, undefined, checkout)
  try {
    await cluster.send('PUT', '/db', null, 201)
    await cluster.send(
      'POST', '/db/_bulk_docs',
      { docs: Array.from({ length: 200 }, (_, index) => ({ _id: `d${index}`, a: 'x'.repeat(100) })) }, 201,
    )
    const restMiB = Math.max(...cluster.nodes.map(({ processId }) => residentMiB(processId)))
    const body = worst.body()
    const lostBefore = cluster.linksLost()
    const watch = new SilenceWatch(cluster.nodes)
    const startedAt = performance.now()
    const { status, text: said } = await sendWorst(cluster.nodes[0]!.port, auth, 'db', worst, body)
    const seconds = (performance.now() - startedAt) / 1000
    await watch.end()
    const cells = [
      worst.name, (body.length / 1e6).toFixed(3), seconds.toFixed(1), watch.longestMs.toFixed(0),
      watch.busiestMs.toFixed(0), (watch.peakMiB - restMiB).toFixed(0), cluster.linksLost() - lostBefore,
      status < 300 ? status : `${status} ${said}`,
    ]
    console.log(`| ${cells.join(' | ')} |`)
  } finally {
    await cluster.stop()
  }
}

console.log('| body | MB | s | longest `/_up`, ms | of it CPU, ms | MiB more resident | links lost | answer |')
console.log('|---|---|---|---|---|---|---|---|')
for (const worst of [...foundBodies, ...acceptedBodies]) if (worst.name.includes(text)) await measure(worst)
