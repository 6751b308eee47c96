import { expect } from 'chai'
import { MemoryNode } from '../memory-node.ts'

const base = '/_node/_local/_config'

describe('settings in the configuration API', () => {
  let node: MemoryNode
  beforeEach(() => { node = new MemoryNode({ nodes: ['node1@127.0.0.1', 'node2@127.0.0.1'] }) })
  afterEach(() => node.stop())

  it('are refused when they are very long, before a password is hashed or another node is asked', async () => {
    const long = JSON.stringify('x'.repeat(16_385))
    const hashed = node.machine.pbkdf2Calls
    for (const path of [`${base}/x/y`, `${base}/admins/anna`, '/_node/node2@127.0.0.1/_config/x/y']) {
      const { status, json } = await node.put(path, long)
      expect([status, json.error], path).to.deep.equal([400, 'bad_request'])
      expect(json.reason).to.include('the value has 16385 characters; over HTTP it may have 16384.')
    }
    const named = await node.put(`${base}/${'s'.repeat(300)}/${'k'.repeat(300)}`, '"x"')
    expect([named.status, named.json.reason.length < 300]).to.deep.equal([400, true])
    // The login of the first request is the only hash.
    expect([node.machine.pbkdf2Calls - hashed, node.control.asked.length]).to.deep.equal([1, 0])
    expect((await node.put(`${base}/x/y`, JSON.stringify('x'.repeat(16_384)))).status).to.equal(200)
  })
})

describe('secrets in the configuration API', () => {
  let node: MemoryNode
  beforeEach(() => { node = new MemoryNode() })
  afterEach(() => node.stop())

  it('are set and removed, but never shown', async () => {
    const first = 'the first secret of sessions'
    const answers = [
      await node.put(`${base}/chttpd_auth/secret`, JSON.stringify(first)),
      await node.get(`${base}/chttpd_auth/secret`),
      await node.get(`${base}/chttpd_auth`),
      await node.get(base),
      await node.put(`${base}/chttpd_auth/secret`, '"the second"'),
      await node.delete(`${base}/chttpd_auth/secret`),
    ]
    expect(answers.map(({ status }) => status)).to.deep.equal(answers.map(() => 200))
    expect([1, 4, 5].map(index => answers[index]!.json)).to.deep.equal(['****', '****', '****'])
    const texts = answers.map(({ text }) => text).join()
    for (const part of [first, 'the second']) expect(texts).not.to.include(part)
    expect(node.configuration.get('chttpd_auth', 'secret')).to.equal(undefined)
  })

  it('are not replaced by the text that stands for them', async () => {
    await node.put(`${base}/chttpd_auth/secret`, '"kept"')
    const refused = await node.put(`${base}/chttpd_auth/secret`, '"****"')
    expect([refused.status, refused.json.error]).to.deep.equal([400, 'bad_request'])
    expect(node.configuration.get('chttpd_auth', 'secret')).to.equal('kept')
    expect((await node.put(`${base}/log/level`, '"****"')).status, 'a value that is no secret').to.equal(200)
  })

  it('include the keys of tokens', async () => {
    const key = 'dGhlIGZpcnN0IHNlY3JldCBvZiBzZXNzaW9ucw=='
    const answers = [
      await node.put(`${base}/jwt_keys/hmac:a`, JSON.stringify(key)),
      await node.put(`${base}/jwt_keys/hmac:a`, '"c2Vjb25k"'),
      await node.get(`${base}/jwt_keys`),
      await node.get(`${base}/jwt_keys/hmac:a`),
      await node.delete(`${base}/jwt_keys/hmac:a`),
    ]
    expect(answers.map(({ json }) => json)).to.deep.equal(['', '****', { 'hmac:a': '****' }, '****', '****'])
  })
})
