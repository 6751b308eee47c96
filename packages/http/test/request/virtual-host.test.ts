import { expect } from 'chai'
import { bySpecificity, parseVirtualHost, virtualTarget } from '../../src/request/virtual-host.ts'
import { MemoryNode } from '../memory-node.ts'

const globals = ['_utils', '_session']

type Resolve = (host: string | undefined, target: string) => string | null

function resolver(rules: Readonly<Record<string, string>>): Resolve {
  const parsed = bySpecificity(Object.entries(rules).map(([rule, target]) => parseVirtualHost(rule, target)))
  return (host, target) => virtualTarget(parsed, host, target, globals)
}

describe('virtual hosts', () => {
  it('put a path before that of the request, which stays as the client sent it', () => {
    const resolve = resolver({ 'blog.example.org': '/blog/_design/site/_rewrite', 'root.example.org': '/' })
    expect(resolve('Blog.Example.org:5984', '/a%2Fb//c/?x=/y&z')).to.equal(
      '/blog/_design/site/_rewrite/a%2Fb//c/?x=/y&z',
    )
    expect(resolve('blog.example.org', '/')).to.equal('/blog/_design/site/_rewrite/')
    expect(resolve('root.example.org', '/db?x')).to.equal('/db?x')
    expect(resolve('other.example.org', '/a')).to.equal(null)
    expect(resolve('a.blog.example.org', '/a')).to.equal(null)
    expect(resolve(undefined, '/a')).to.equal(null)
  })

  it('apply to each form in which a client names the host', () => {
    const resolve = resolver({ 'a.org': '/db', 'b.org:80': '/port' })
    for (const host of ['a.org', 'A.org', 'a.org.', 'a.org:', 'a.org:80']) {
      for (const target of ['/d?x', 'http://a.org/d?x', 'HTTP://u:p@a.org:80/d?x']) {
        expect(resolve(host, target), `${host} ${target}`).to.equal('/db/d?x')
      }
    }
    expect(resolve('a.org', 'http://a.org')).to.equal('/db/')
    expect(resolve('b.org:080', '/d')).to.equal('/port/d')
    for (const host of ['b.org', 'b.org:', 'b.org:81']) expect(resolve(host, '/d'), host).to.equal(null)
  })

  it('leave the paths alone that are the same at every host', () => {
    const resolve = resolver({ 'a.org': '/db' })
    for (const path of ['/_session', '/_session?basic=true', '/_utils/x']) expect(resolve('a.org', path)).to.equal(null)
    expect(resolve('a.org', '/_sessions')).to.equal('/db/_sessions')
  })

  it('use parts of the host in the path', () => {
    const resolve = resolver({ ':Db.:team.a.org': '/:team/x/:Db', '*.b.org': '/*', ':db.c.org': '/:db/_all_docs' })
    expect(resolve('one.two.b.org', '/d')).to.equal('/two/one/d')
    expect(resolve('b.org', '/d')).to.equal(null)
    expect(resolve('x.c.org', '/')).to.equal('/x/_all_docs/')
    expect(resolve('x.y.a.org', '/')).to.equal('/y/x/x/')
  })

  it('apply the most specific rule', () => {
    const resolve = resolver({
      '*': '/any', '*.a.org': '/star', ':x.a.org': '/bound', 'b.a.org': '/fixed', 'b.a.org:80': '/port',
      'b.a.org/old': '/moved',
    })
    expect(resolve('else', '/d')).to.equal('/any/d')
    expect(resolve('x.y.a.org', '/d')).to.equal('/star/d')
    expect(resolve('c.a.org', '/d')).to.equal('/bound/d')
    expect(resolve('b.a.org:5984', '/d')).to.equal('/fixed/d')
    expect(resolve('b.a.org:80', '/d')).to.equal('/port/d')
    expect(resolve('b.a.org', '/old/d?e')).to.equal('/moved/d?e')
    expect(resolve('b.a.org', '/older')).to.equal('/fixed/older')
  })

  it('match no host whose characters could change the path', () => {
    const resolve = resolver({ '*': '/*' })
    for (const host of ['..', 'a/b', 'a%2Fb', 'a b', '[::1]:5984', `${'a'.repeat(300)}`, 'a?b', '']) {
      expect(resolve(host, '/d'), host).to.equal(null)
    }
  })

  it('are refused when they are malformed', () => {
    for (const [rule, target] of [
      ['a b', '/x'], ['a.*.org', '/x'], ['', '/x'], ['a.org', 'x'], ['a.org', ''], ['a.org', '/x?y'],
      ['a.org', '/:db'], ['a.org', '/*'], ['a.org:port', '/x'],
    ] as const) {
      expect(() => parseVirtualHost(rule, target), `${rule} = ${target}`).to.throw()
    }
  })

  it('apply to requests as soon as they are set, and show the path of the client', async () => {
    const node = new MemoryNode()
    await node.put('/blog')
    await node.put('/blog/first', { n: 1 })
    const host = { host: 'blog.example.org' }
    expect((await node.get('/first', host)).status).to.equal(404)
    await node.configuration.set('vhosts', 'blog.example.org', '/blog', { persist: false })
    expect((await node.get('/first', host)).json.n).to.equal(1)
    expect((await node.get('/blog/first')).json.n).to.equal(1)
    expect((await node.put('/second', { n: 2 }, host)).status).to.equal(201)
    expect((await node.get('/blog/second', { host: 'x', 'x-forwarded-host': 'elsewhere' })).json.n).to.equal(2)
    expect((await node.get('/_session', host)).json.userCtx.name).to.equal('admin')
    expect((await node.get('http://blog.example.org/first', host)).json.n).to.equal(1)
    for (const [target, named] of [
      ['http://other/blog/first', 'blog.example.org'], ['http://blog.example.org/first', 'other'],
      ['http://blog.example.org@other/blog/first', 'blog.example.org'],
    ] as const) {
      const refused = await node.get(target, { host: named })
      expect([refused.status, refused.json.reason]).to.deep.equal([400, 'The request names two hosts'])
    }
    await node.stop()
  })
})
