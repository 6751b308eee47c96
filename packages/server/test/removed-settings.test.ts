import { expect } from 'chai'
import { MemoryCluster } from './memory-cluster.ts'

describe('a setting that was removed from memory only', () => {
  let cluster: MemoryCluster
  beforeEach(async () => {
    cluster = new MemoryCluster(1, {}, ['bert = -1', '[jwt_auth]', 'audience = a', '[custom]', 'old = of the operator'])
    await cluster.start(1)
    await cluster.ready()
  })
  afterEach(() => cluster.close())

  const config = async (method: string, name: string, json?: unknown, headers = {}): Promise<unknown> => {
    const { status, body } = await cluster.send(1, method, `/_node/_local/_config/${name}`, json, undefined, headers)
    return status === 200 ? body : `${status} ${body.reason}`
  }
  const inMemory = { 'x-couch-persist': 'false' }
  const unknown = '404 unknown_config_value'

  it('is removed from the file of the node, too, and does not come back', async () => {
    for (const [name, value] of [['custom/new', 'x'], ['uuids/max_count', '77'], ['jwt_auth/audience', 'b']] as const) {
      await config('PUT', name, value)
      expect(await config('DELETE', name, undefined, inMemory), name).to.equal(value)
    }
    await config('PUT', 'custom/secret', 'hunter2')
    expect(await config('DELETE', 'custom/secret', undefined, inMemory)).to.equal('****')
    expect(await config('GET', 'custom/new')).to.equal(unknown)
    expect(await config('DELETE', 'custom/new', undefined, inMemory), 'memory only, again').to.equal(unknown)
    expect(await config('DELETE', 'custom/new')).to.equal('x')
    expect(await config('DELETE', 'custom/secret')).to.equal('****')
    expect(await config('DELETE', 'uuids/max_count'), 'the default is in effect').to.equal('1000')
    for (const name of ['custom/new', 'custom/secret']) {
      expect(await config('DELETE', name), 'not in the file any more').to.equal(unknown)
    }
    await config('POST', '_reload')
    for (const name of ['custom/new', 'custom/secret']) expect(await config('GET', name)).to.equal(unknown)
    expect(await config('GET', 'uuids/max_count')).to.equal('1000')
  })

  it('is removed for ever when it is an administrator, whatever file has it', async () => {
    expect(await config('DELETE', 'admins/bert', undefined, inMemory)).to.equal('-1')
    expect(await config('DELETE', 'admins/bert')).to.equal('-1')
    await config('POST', '_reload')
    expect(await config('GET', 'admins/bert')).to.equal(unknown)
    expect(await config('DELETE', 'admins/bert')).to.equal(unknown)
  })

  it('stays in a file of the operator, which the node does not write', async () => {
    expect(await config('DELETE', 'custom/old', undefined, inMemory)).to.equal('of the operator')
    expect(await config('DELETE', 'custom/old')).to.equal(unknown)
    await config('POST', '_reload')
    expect(await config('DELETE', 'custom/old')).to.equal('of the operator')
    expect(await config('DELETE', 'custom/old')).to.equal(unknown)
  })
})
