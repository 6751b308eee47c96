import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { ApiError } from '@sectional/core'
import { expect } from 'chai'
import type { Handler, Resource } from '../src/pipeline/resource.ts'
import { databaseResources, databaseRoot, serverResources } from '../src/route-table.ts'

const folder = fileURLToPath(new URL('../../../docs/reference/', import.meta.url))
const pages = new Map(readdirSync(folder).map(name => [name, readFileSync(folder + name, 'utf8')]))
const index = pages.get('README.md')!

/**
 * Paths that the section "Design documents" of documents.md describes together, because they work like other documents.
 */
const likeDocuments = new Set(['/{db}/_design/{}', '/{db}/_design/{}/{}'])

interface Endpoint { readonly method: string; readonly path: string; readonly handler: Handler }

function endpoints(): readonly Endpoint[] {
  const resources: [string, Resource][] = [
    ...Object.entries(serverResources()),
    ['/{db}', databaseRoot()],
    ...Object.entries(databaseResources()).map(([path, entry]): [string, Resource] => [`/{db}${path}`, entry]),
  ]
  return resources.flatMap(([path, { methods }]) => (
    Object.entries(methods).map(([method, handler]) => ({ method, path: shape(path), handler }))
  ))
}

/** Returns the path with the names of its parameters removed, except the database's. */
function shape(path: string): string {
  return path.replace(/\{(?!db\})[^}]*\}/g, '{}')
}

function isMissing(handler: Handler): boolean {
  // Handlers that use no request only throw an error.
  if (handler.length > 0) return false
  try {
    void (handler as () => void)()
  } catch (error) {
    return error instanceof ApiError && error.status === 501
  }
  return false
}

/** Returns the headings of endpoints, which have the form `## GET, POST /path`. */
function described(): readonly string[] {
  return [...pages.values()].flatMap(page => [...page.matchAll(/^## ([A-Z, ]+) (\/\S*)$/gm)])
    .flatMap(([, methods, path]) => methods!.split(', ').map(method => `${method} ${shape(path!)}`))
}

describe('docs/reference', () => {
  // Handlers of all methods (`*`) are left out: they only answer with errors.
  it('describes every endpoint exactly once, and no others', () => {
    const there = endpoints()
      .filter(({ method, path, handler }) => !isMissing(handler) && method !== '*' && !likeDocuments.has(path))
      .map(({ method, path }) => `${method} ${path}`)
    expect([...described()].sort()).to.deep.equal([...there].sort())
  })

  it('lists the paths that answer 501, and none else', () => {
    const missing = endpoints().filter(({ handler }) => isMissing(handler)).map(({ path }) => path)
    const section = index.slice(index.indexOf('## Not available'), index.indexOf('Documents of `_replicator`'))
    const listed = [...section.matchAll(/`(\/[^`]*)`/g)].map(([, path]) => shape(path!))
    expect([...listed].sort()).to.deep.equal([...new Set(missing)].sort())
  })

  it('has every endpoint in its index', () => {
    const listed = [...index.matchAll(/^\| ([A-Z, ]+) \| \[`(\/[^`]*)`\]/gm)]
      .flatMap(([, methods, path]) => methods!.split(', ').map(method => `${method} ${shape(path!)}`))
    expect(listed).to.have.members(described())
  })

  it('has an example of every endpoint, with its answer', () => {
    const sections = [...pages.values()].flatMap(page => page.split(/^## /m))
    const answered = /^```sh\ncurl [^`]*```\n```http\n/m
    const bare = sections.filter(section => /^[A-Z, ]+ \//.test(section) && !answered.test(section))
    expect(bare.map(section => section.split('\n')[0])).to.deep.equal([])
  })
})
