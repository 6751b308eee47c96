import assert from 'node:assert/strict'
import type { CoordinatorNode } from '@sectional/cluster'
import { MemoryNode } from '../memory-node.ts'
import { MemoryViews } from '../views/memory-views.ts'

/** Paths to functions and views that do not exist. */
const absent = [
  '_design/d/_show/none', '_design/d/_list/none/v', '_design/d/_list/l/none', '_design/d/_update/none',
  '_design/d/_view/none', '_design/d/_rewrite/x', '_changes?filter=d/none', '_changes?filter=_view&view=d/none',
]

describe('a design document that has no function of a given name', () => {
  let node: MemoryNode
  let readings: number
  let isKnown: boolean

  function counted(coordinator: CoordinatorNode): CoordinatorNode {
    const { openDocument, designDocument } = coordinator
    return Object.assign(coordinator, new MemoryViews(coordinator), {
      openDocument: async (...parameters: Parameters<typeof openDocument>) => {
        if (parameters[2].body !== false) readings++
        return openDocument(...parameters)
      },
      designDocument: async (...parameters: Parameters<typeof designDocument>) =>
        isKnown ? designDocument(...parameters) : null,
    })
  }

  beforeEach(async () => {
    isKnown = true
    node = new MemoryNode({ wrap: counted })
    await node.put('/db')
    await node.put('/db/_design/d', { lists: { l: '() => ""' }, views: { v: { map: 'doc => {}' } } })
    await node.get('/db/_design/d/_view/v')
    readings = 0
  })
  afterEach(() => node.stop())

  const ask = async (path: string): Promise<number> =>
    (await node.request(path.includes('_update') ? 'POST' : 'GET', `/db/${path}`)).status

  it('is not read again for it while its revision is the same', async () => {
    for (const path of absent) assert.equal(await ask(path), 404, path)
    assert.equal(await ask('_design/d/_info'), 200)
    assert.equal(readings, 0)
  })

  it('is read once at a time while this node knows another revision', async () => {
    isKnown = false
    const path = '_design/d/_show/none'
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(path)))
    assert.deepEqual(new Set(answers), new Set([404]))
    assert.ok(readings <= 2, `${readings} readings`)
  })

  it('is missing once it is deleted', async () => {
    const { json } = await node.get('/db/_design/d')
    isKnown = false
    await node.request('DELETE', `/db/_design/d?rev=${json._rev}`)
    const { status, json: { reason } } = await node.get('/db/_design/d/_show/none')
    assert.deepEqual([status, reason], [404, 'deleted'])
  })
})
