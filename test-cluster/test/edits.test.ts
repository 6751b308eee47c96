import { expect } from 'chai'
import { TestCluster } from '../src/test-cluster.ts'

describe('concurrent edits through all three nodes', function () {
  let cluster: TestCluster
  afterEach(async function () { await cluster.close(this.currentTest?.state === 'failed') })

  it('leave one branch: each edit is accepted once or refused, never stored as a hidden conflict', async () => {
    cluster = await TestCluster.start({ nodes: 3 })
    await cluster.node(1).http.send('PUT', '/counters')
    const documents = 5
    const editsWanted = 1000
    let accepted = 0
    let refused = 0
    let attempts = 0

    const editor = async (number: number) => {
      while (attempts < editsWanted) {
        const id = `counter ${attempts++ % documents}`
        const { status, body } = await cluster.read(number, 'counters', id)
        const current = status === 200 ? body : { value: 0 }
        // The edits must differ: two equal edits of one revision would create the same revision, and both would
        // succeed.
        const answer = await cluster.write(number, 'counters', id, {
          ...current, value: current.value + 1, edit: attempts,
        })
        expect(answer.status, JSON.stringify(answer.body)).to.be.oneOf([201, 409])
        if (answer.status === 201) accepted++
        else refused++
      }
    }
    await Promise.all(Array.from({ length: 24 }, (_, index) => editor(1 + index % 3)))

    await cluster.converge('counters')
    let sum = 0
    for (let index = 0; index < documents; index++) {
      const { body } = await cluster.read(
        1 + index % 3, 'counters', `counter ${index}`, '?conflicts=true&deleted_conflicts=true&r=3',
      )
      expect(body._conflicts, 'conflict branches').to.equal(undefined)
      expect(body._deleted_conflicts).to.equal(undefined)
      expect(Number(body._rev.split('-')[0])).to.equal(body.value)
      sum += body.value
    }
    expect(sum).to.equal(accepted)
    expect(accepted + refused).to.be.at.least(editsWanted)
  })
})
