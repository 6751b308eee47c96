import { expect } from 'chai'
import { Router } from '../../src/pipeline/router.ts'

describe('router', () => {
  const router = new Router<string>()
  for (const pattern of [
    '/', '/_node/{node}', '/_node/{node}/_stats/{path...}', '/{id}', '/{id}/{attachment...}',
    '/_design/{name}', '/_design/{name}/_view/{view}', '/_design/{name}/{attachment...}',
  ]) {
    router.add(pattern, pattern)
  }
  const match = (path: string) => router.match(path.split('/').filter(segment => segment !== ''), 0)

  it('prefers literals to parameters and parameters to the rest', () => {
    expect(match('/_design/x')).to.deep.equal({ resource: '/_design/{name}', params: ['x'] })
    expect(match('/doc')).to.deep.equal({ resource: '/{id}', params: ['doc'] })
    expect(match('/doc/a/b.txt')).to.deep.equal({ resource: '/{id}/{attachment...}', params: ['doc', 'a/b.txt'] })
  })

  it('falls back to a wider route when no route continues a literal', () => {
    expect(match('/_design/x/_view')).to.deep.equal({
      resource: '/_design/{name}/{attachment...}', params: ['x', '_view'],
    })
    expect(match('/_design/x/_view/v')).to.deep.equal({ resource: '/_design/{name}/_view/{view}', params: ['x', 'v'] })
  })

  it('starts anywhere in the segments', () => {
    expect(router.match(['db', 'doc'], 1)).to.deep.equal({ resource: '/{id}', params: ['doc'] })
  })

  it('finds nothing below a path that has no rest', () => {
    const small = new Router<string>()
    small.add('/_up', 'up')
    expect(small.match(['_up', 'more'], 0)).to.equal(null)
  })
})
