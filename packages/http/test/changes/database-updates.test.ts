import { shardRanges, type HashRange } from '@sectional/core'
import { expect } from 'chai'
import { MemoryNode } from '../memory-node.ts'

const [wholeRange] = shardRanges(1) as [HashRange]

describe('_db_updates', () => {
  let node: MemoryNode

  beforeEach(async () => {
    node = new MemoryNode()
    await node.put('/before')
    await node.put('/before/a', {})
    await node.put('/empty')
  })

  afterEach(() => node.stop())

  const rows = async (query = ''): Promise<string[]> =>
    (await node.get(`/_db_updates${query}`)).json.results.map((row: {
      readonly type: string
      readonly db_name: string
    }) =>
      `${row.type} ${row.db_name}`).sort()
  const settle = (): Promise<void> => node.clock.advance(2000)

  it('reports the databases that exist at the first request, and later events', async () => {
    expect(await rows()).to.deep.equal(['created before', 'created empty', 'updated before'])
    await node.put('/later')
    await node.put('/empty/a', {})
    await settle()
    expect(await rows()).to.deep.equal([
      'created before', 'created empty', 'created later', 'updated before', 'updated empty',
    ])
    await node.delete('/empty')
    await settle()
    expect(await rows()).to.include('deleted empty')
  })

  it('creates no database before the first request', async () => {
    await settle()
    expect((await node.get('/_all_dbs')).json).to.deep.equal(['before', 'empty'])
  })

  it('continues after its tokens, and reports further updates of a database', async () => {
    const { last_seq: since } = (await node.get('/_db_updates')).json
    expect(await rows(`?since=${since}`)).to.deep.equal([])
    await node.put('/before/b', {})
    await settle()
    expect(await rows(`?since=${since}`)).to.deep.equal(['updated before'])
    expect(await rows('?since=now')).to.deep.equal([])
    expect(await rows('?limit=1&descending=true')).to.deep.equal(['updated before'])
  })

  it('reports a database that was deleted and created again', async () => {
    const { last_seq: since } = (await node.get('/_db_updates')).json
    await node.delete('/empty')
    await node.put('/empty')
    await settle()
    expect(await rows(`?since=${since}`)).to.deep.equal(['created empty', 'deleted empty'])
  })

  it('does not report local documents', async () => {
    const { last_seq: since } = (await node.get('/_db_updates')).json
    await node.put('/before/_local/checkpoint', { seq: 1 })
    await settle()
    expect(await rows(`?since=${since}`)).to.deep.equal([])
  })

  const masked = (text: string): string => text.replace(/"\d+-A[\w-]+"/g, '"S"')
  const row = (type: string, name: string): string => `{"db_name":"${name}","type":"${type}","seq":"S"}`

  it('frames each kind of feed', async () => {
    await rows()
    const { last_seq: since } = (await node.get('/_db_updates')).json
    const text = async (query: string): Promise<string> => {
      const answer = node.get(`/_db_updates?since=${since}&${query}`)
      await node.clock.advance(1000)
      await node.put(`/before/${query.length}${Math.round(node.clock.monotonic())}`, {})
      return masked((await node.during(answer)).text)
    }
    const updated = row('updated', 'before')
    expect(await text('feed=longpoll')).to.equal(`{"results":[\n\n${updated}\n],\n"last_seq":"S"}\n\n`)
    expect(await text('feed=normal')).to.equal(`{"results":[\n${updated}\n],\n"last_seq":"S"}\n\n`)
    expect(await text('feed=continuous&limit=1')).to.equal(`${updated}\n{"last_seq":"S"}\n\n`)
    expect(await text('feed=eventsource&limit=1')).to.equal(`data: ${updated}\nid: "S"\n\n\n`)
    await settle()
    const ended = await node.during(node.get('/_db_updates?since=now&feed=continuous&timeout=100'))
    expect(masked(ended.text)).to.equal('\n{"last_seq":"S"}\n\n')
  })

  it('has a tag', async () => {
    const { etag } = (await node.get('/_db_updates')).headers
    expect((await node.get('/_db_updates?limit=1', { 'if-none-match': etag! })).status).to.equal(304)
  })

  it('refuses what it cannot read, and strangers', async () => {
    const refused = async (query: string): Promise<unknown> => {
      const { status, json } = await node.get(`/_db_updates?${query}`)
      return [status, json.reason]
    }
    expect(await refused('feed=live')).to.deep.equal([
      400, 'Supported `feed` types: normal, continuous, longpoll, eventsource',
    ])
    expect(await refused('timeout=soon')).to.deep.equal([400, 'invalid_integer'])
    expect(await refused('limit=-2')).to.deep.equal([400, 'invalid_integer'])
    expect(await refused('heartbeat=x')).to.deep.equal([400, 'invalid_integer'])
    expect(await refused('since=yesterday')).to.deep.equal([400, "Malformed sequence supplied in 'since' parameter."])
    expect((await node.get('/_db_updates', { authorization: '' })).status).to.equal(401)
    expect((await node.post('/_db_updates', {})).status).to.equal(405)
  })

  it('is missing where it is switched off', async () => {
    node.configuration.put('global_changes', 'update_db', 'false')
    expect((await node.get('/_db_updates')).status).to.equal(404)
  })

  it('is recorded and read where its replicas are after they have moved', async () => {
    await node.stop()
    node = new MemoryNode({ nodes: ['a@n', 'b@n', 'c@n'] })
    const { control } = node
    const moveTo = (replica: string): Promise<void> => control.setDatabaseOption('_global_changes', {
      shards: [{ range: wholeRange, replicas: [{ node: replica, filling: false }] }],
    })
    node.configuration.put('global_changes', 'update_db', 'false')
    await control.createDatabase('_global_changes', { q: 1, n: 3, partitioned: false })
    await moveTo('b@n')
    node.configuration.put('global_changes', 'update_db', 'true')
    await node.put('/first')
    await settle()
    expect(await rows()).to.include('created first')
    await moveTo('c@n')
    node.down.add('b@n')
    await node.put('/second')
    await settle()
    expect(await rows()).to.include('created second')
  })
})
