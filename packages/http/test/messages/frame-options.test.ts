import { expect } from 'chai'
import { MemoryNode } from '../memory-node.ts'

describe('frames of other pages', () => {
  let node: MemoryNode
  beforeEach(() => { node = new MemoryNode() })
  afterEach(() => node.stop())

  async function frameOptions(headers: Record<string, string> = {}): Promise<unknown> {
    const answers = await Promise.all(['/', '/none', '/_all_dbs'].map(target => node.get(target, headers)))
    const values = new Set(answers.map(answer => answer.headers['x-frame-options']))
    expect(values.size).to.equal(1)
    return [...values][0]
  }

  it('may have answers by default, and none or those of the same origin by configuration', async () => {
    node.configuration.put('x_frame_options', 'same_origin', 'true')
    expect(await frameOptions()).to.equal(undefined)
    node.configuration.put('chttpd', 'enable_xframe_options', 'true')
    expect(await frameOptions()).to.equal('SAMEORIGIN')
    node.configuration.put('x_frame_options', 'same_origin', 'false')
    expect(await frameOptions()).to.equal('DENY')
  })

  it('may have the answers of the hosts that are listed', async () => {
    node.configuration.put('chttpd', 'enable_xframe_options', 'true')
    node.configuration.put('x_frame_options', 'hosts', 'http://a.example, https://b.example:8443')
    expect(await frameOptions({ host: 'a.example' })).to.equal('ALLOW-FROM http://a.example')
    expect(await frameOptions({ 'host': 'x', 'x-forwarded-host': 'b.example:8443', 'x-forwarded-proto': 'https' }))
      .to.equal('ALLOW-FROM https://b.example:8443')
    for (const host of ['b.example:8443', 'evil.example']) expect(await frameOptions({ host })).to.equal('DENY')
    node.configuration.put('x_frame_options', 'hosts', '*')
    expect(await frameOptions({ host: 'any.example' })).to.equal('ALLOW-FROM http://any.example')
  })
})
