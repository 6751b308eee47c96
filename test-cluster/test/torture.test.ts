import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { checkHistory } from '@sectional/simulator/history'
import type { Edit, RecordedHistory } from '@sectional/simulator/history'
import { loadHistory, storeHistory } from '../torture/history-file.ts'
import { createDatabase } from '../torture/torture-database.ts'
import { torture, type TortureOptions } from '../torture/torture.ts'

const quiet: TortureOptions = { seed: 1, ms: 6000, faults: false, print: () => {} }

function rules(history: RecordedHistory): string[] {
  return [...new Set(checkHistory(history).map(({ rule }) => rule))]
}

describe('the history of real nodes', () => {
  let history: RecordedHistory
  before(async () => {
    const result = await torture(quiet)
    expect(result.findings).to.deep.equal([])
    history = result.history
  })

  /** Returns the history with a change of the first edit that the predicate accepts. */
  function altered(accepts: (edit: Edit) => boolean, change: (edit: Edit) => Partial<Edit>): RecordedHistory {
    const edit = history.edits.find(accepts)!
    return { ...history, edits: history.edits.map(each => each === edit ? { ...each, ...change(each) } : each) }
  }

  it('is valid, and is the same after it was stored in a file', () => {
    const file = join(tmpdir(), `sectional-history-${process.pid}.json`)
    try {
      storeHistory(file, history)
      expect(loadHistory(file)).to.deep.equal(JSON.parse(JSON.stringify(history), (key, value) =>
        key === 'endMs' && value === null ? Infinity : key === 'finals' ? history.finals : value))
    } finally {
      rmSync(file)
    }
    expect(history.edits.filter(({ outcome }) => outcome === 'done').length).to.be.above(10)
    expect(history.edits.some(({ outcome }) => outcome === 'conflict')).to.equal(true)
    for (const path of ['/_view/', '_find']) {
      expect(history.reads.some(({ label, revision }) => label.includes(path) && revision !== null)).to.equal(true)
    }
  })

  it('is refused when a 201 names another revision', () => {
    const forged = altered(({ outcome, deleted }) => outcome === 'done' && !deleted, ({ revision }) =>
      ({ revision: `${parseInt(revision!, 10)}-${'0'.repeat(32)}` }))
    expect(rules(forged)).to.include('acknowledged-kept')
  })

  it('is refused when a 409 has taken effect', () => {
    const revisions = new Set([...history.finals!.values()].flatMap(({ branches }) =>
      branches.flatMap(({ revisions: path }) => path)))
    const forged = altered(
      ({ outcome, revision }) => outcome === 'done' && revisions.has(revision!), () => ({ outcome: 'conflict' }),
    )
    expect(rules(forged)).to.include('conflicts-final')
  })

  it('is refused when a list, a view or a query at rest shows no row for an acknowledged document', () => {
    const { restMs = Infinity } = history
    for (const what of ['_all_docs', 'the view', '_find']) {
      const row = history.reads.find(({ startMs, label, revision }) =>
        startMs >= restMs && label.includes(what) && revision !== null)
      expect(row, what).not.to.equal(undefined)
      const reads = history.reads.map(each => each === row ? { ...each, revision: null } : each)
      expect(rules({ ...history, reads }), what).to.include('reads-agree')
    }
  })
})

describe('the loss of the disks of all replicas', () => {
  it('is reported as the loss of acknowledged edits', async () => {
    const { findings, folder } = await torture({
      ...quiet, ms: 3000,
      async beforeRest(cluster) {
        for (const node of cluster.nodes) {
          await node.crash()
          node.wipe()
        }
        for (const node of cluster.nodes) node.start()
        await cluster.ready()
        await createDatabase(cluster.node(1), 2)
      },
    })
    rmSync(folder!, { recursive: true })
    expect(findings.map(({ rule }) => rule)).to.include('acknowledged-kept')
  })
})
