import { expect } from 'chai'
import { sendWorst, SilenceWatch } from '../src/silence-watch.ts'
import { TestCluster } from '../src/test-cluster.ts'
import { administrator } from '../src/test-node.ts'
import { acceptedBodies, foundBodies, type WorstBody } from '../src/worst-bodies.ts'

/**
 * Maximum CPU milliseconds of a node between a request and its answer. Longer waits are caused by other work of the
 * machine.
 */
const busyMsMax = 1000
/** Maximum growth of memory over all requests of one client. V8 returns memory late, so earlier requests count too. */
const grownMiBMax = 1024
/** Bodies that are slow only because there are many of them. */
const leftOut = [
  '14 documents', '1,000 attachments', '1,000 branches', 'document of nested lists', 'document of white space',
]

describe('the costliest bodies', function () {
  this.timeout(180_000)
  let cluster: TestCluster
  afterEach(async function () { await cluster.close(this.currentTest?.state === 'failed') })

  it('do not stop answers, break links or use much memory, whether they are refused or accepted', async () => {
    cluster = await TestCluster.start({ nodes: 3 })
    const nodes = cluster.nodes.map(({ http: { port }, processId }) => ({ port, processId: processId! }))
    await cluster.node(1).http.send('PUT', '/worst')
    await cluster.node(1).http.send('POST', '/worst/_bulk_docs', {
      json: { docs: Array.from({ length: 200 }, (_, index) => ({ _id: `d${index}`, a: 'x'.repeat(100) })) },
    })
    const linksClosed = (): number =>
      cluster.nodes.reduce((count, node) => count + (node.log().match(/a link closed/g)?.length ?? 0), 0)
    const closedBefore = linksClosed()
    const rest = new SilenceWatch(nodes)
    await rest.end()

    const tryBody = async (worst: WorstBody, statuses: readonly number[]): Promise<void> => {
      const watch = new SilenceWatch(nodes)
      const answer = await sendWorst(nodes[0]!.port, administrator, 'worst', worst, worst.body())
      await watch.end()
      expect(answer.status, `${worst.name}: ${answer.text}`).to.be.oneOf(statuses)
      expect(watch.longestMs, `${worst.name}: the longest wait for /_up`).to.be.below(Number.POSITIVE_INFINITY)
      expect(watch.busiestMs, `${worst.name}: CPU time of the longest wait for /_up`).to.be.below(busyMsMax)
      expect(watch.peakMiB - rest.peakMiB, `${worst.name}: MiB more resident`).to.be.below(grownMiBMax)
    }
    for (const worst of foundBodies) await tryBody(worst, [400, 413])
    for (const worst of acceptedBodies) {
      if (!leftOut.some(name => worst.name.includes(name))) await tryBody(worst, [200, 201, 202, 400])
    }
    expect(linksClosed(), 'links that closed').to.equal(closedBefore)
  })
})
