import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { TestCluster } from '../src/test-cluster.ts'

describe('validation functions on three nodes', () => {
  let cluster: TestCluster
  before(async () => { cluster = await TestCluster.start({ nodes: 3 }) })
  after(async function () { await cluster.close(this.currentTest?.state === 'failed') })

  async function design(number: number, database: string, source: string): Promise<void> {
    const { http } = cluster.node(number)
    const { status } = await http.send('PUT', `/${database}/_design/v`, {
      json: { validate_doc_update: source },
    })
    expect(status).to.equal(201)
  }

  it('apply at once on the node that wrote them, and within five seconds on the others', async () => {
    await cluster.node(1).http.send('PUT', '/ruled?q=2')
    for (const number of [1, 2, 3]) {
      expect((await cluster.write(number, 'ruled', `before${number}`, {})).status).to.equal(201)
    }
    await design(1, 'ruled', '() => { throw { forbidden: "closed" } }')
    const { status, body } = await cluster.write(1, 'ruled', 'at-once', {})
    expect([status, body]).to.deep.equal([403, { error: 'forbidden', reason: 'closed' }])
    const endsAt = performance.now() + 5_000
    for (const number of [2, 3]) {
      for (let n = 0; ; n++) {
        if ((await cluster.write(number, 'ruled', `after${number}-${n}`, {})).status === 403) break
        expect(performance.now()).to.be.below(endsAt)
        await sleep(10)
      }
    }
  })

  it('cost only their own database when they never end', async () => {
    for (const database of ['hostile', 'good']) await cluster.node(1).http.send('PUT', `/${database}?q=1`)
    await design(1, 'hostile', '() => { for (;;); }')
    await design(1, 'good', '() => {}')
    expect((await cluster.write(1, 'good', 'first', {})).status).to.equal(201)
    let running = true
    const hostile = cluster.write(1, 'hostile', 'x', {}).finally(() => { running = false })
    let written = 0
    while (running && written < 20) {
      expect((await cluster.write(1, 'good', `x${written}`, {})).status).to.equal(201)
      written++
    }
    expect(written, 'writes of the other database meanwhile').to.equal(20)
    const { status, body } = await hostile
    expect([status, body.error]).to.deep.equal([500, 'timeout'])
  })
})
