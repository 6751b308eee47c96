import { expect } from 'chai'
import { MemoryNode } from '../memory-node.ts'

const base = '/_node/_local/_config'

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
