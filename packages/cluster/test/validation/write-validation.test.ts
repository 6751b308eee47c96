import { ApiError } from '@sectional/core'
import { SandboxError } from '@sectional/runtime'
import { expect } from 'chai'
import type { CoordinatorNode } from '../../src/coordinator-node.ts'
import type {
  DocumentWrite, ReplicatedWrite, WriteOptions, WriteOutcome,
} from '../../src/contracts/coordinator.ts'
import { bytes, edit, ReplicaWorld, request } from '../replica-world.ts'
import type { WorldOptions } from '../replica-world.ts'

const user = { name: 'ann', roles: ['editor'] }
const forbidden = (reason: string): WriteOutcome => (
  { kind: 'error', error: 'forbidden', reason, status: 403, byFunction: true }
)

/** A database with one validation function, and the coordinator of one node. */
class ValidatedWorld extends ReplicaWorld {
  readonly node: CoordinatorNode

  private constructor(options: WorldOptions, node: string) {
    super(options)
    this.node = this.coordinator(node)
  }

  static async create(
    source: string, { at = 'a', ...options }: WorldOptions & { readonly at?: string } = {},
  ): Promise<ValidatedWorld> {
    const world = new ValidatedWorld(options, at)
    await world.design('v', source)
    return world
  }

  async design(name: string, source: string | object, members: object = {}): Promise<void> {
    const [outcome] = await this.update([edit(`_design/${name}`, null, { validate_doc_update: source, ...members })])
    expect(outcome?.kind).to.equal('written')
  }

  update(writes: readonly DocumentWrite[], options: WriteOptions = { user }): Promise<readonly WriteOutcome[]> {
    return this.during(this.node.updateDocuments(this.db, writes, options, request()))
  }

  replicate(writes: readonly ReplicatedWrite[]): Promise<readonly WriteOutcome[]> {
    return this.during(this.node.storeRevisions(this.db, writes, { user }, request()))
  }

  /** Writes without validation and returns the revision. */
  async put(id: string, parent: string | null, value: object, deleted = false): Promise<string> {
    const [outcome] = await this.update([edit(id, parent, value, deleted)], {})
    if (outcome?.kind !== 'written') throw new Error(JSON.stringify(outcome))
    return outcome.revision
  }

  /** Returns the arguments that the function throws as its reason. */
  async thrown(write: DocumentWrite): Promise<unknown[]> {
    const [outcome] = await this.update([write])
    if (outcome?.kind !== 'error') throw new Error(JSON.stringify(outcome))
    return JSON.parse(outcome.reason) as unknown[]
  }
}

function replicated(id: string, start: number, hashes: string, value: object = {}): ReplicatedWrite {
  return { id, path: { start, ids: [...hashes].map(digit => digit.repeat(32)) }, deleted: false, body: bytes(value) }
}

const throwArguments = '(...given) => { throw { forbidden: JSON.stringify(given) } }'
const refuseBad = '(doc, old) => { if (doc.bad) throw { forbidden: "bad " + (old ? old.n : old) } }'

describe('the validation of writes', () => {
  it('refuses writes whose old document cannot be read, and none of the others', async () => {
    const world = await ValidatedWorld.create(refuseBad)
    const parent = await world.put('x', null, { n: 1 })
    for (const node of world.nodes) world.faults.set(node, { kind: 'fail', code: 'storage', verbs: ['openRevisions'] })
    const outcomes = [
      ...await world.update([edit('x', parent, { n: 2 }), edit('y', null, { n: 1 })]),
      ...await world.replicate([replicated('x', 2, 'ab'), replicated('z', 1, 'a')]),
    ]
    expect(outcomes.map(({ kind }) => kind)).to.deep.equal(['error', 'written', 'error', 'written'])
    world.faults.clear()
    expect((await world.leavesOf('x'))['a']).to.deep.equal([{ revision: parent, deleted: false }])
  })

  it('passes the new and the old document, the user and the security object', async () => {
    const world = await ValidatedWorld.create(throwArguments)
    world.setDatabase({ ...world.db, security: { admins: { roles: ['boss'] } } })
    const parent = await world.put('x', null, { n: 1 })
    const hash = parent.slice(2)
    expect(await world.thrown(edit('x', parent, { n: 2 }))).to.deep.equal([
      { _id: 'x', _rev: parent, n: 2, _revisions: { start: 1, ids: [hash] } },
      { _id: 'x', _rev: parent, n: 1, _revisions: { start: 1, ids: [hash] } },
      { db: 'db', name: 'ann', roles: ['editor'] },
      { admins: { roles: ['boss'] } },
    ])
    expect((await world.thrown(edit('x', parent, {}, true)))[0]).to.deep.equal(
      { _id: 'x', _rev: parent, _revisions: { start: 1, ids: [hash] }, _deleted: true },
    )
    expect((await world.thrown(edit('new', null, {}))).slice(0, 2)).to.deep.equal(
      [{ _id: 'new', _revisions: { start: 0, ids: [] } }, null],
    )
  })

  it('passes attachments as stubs', async () => {
    const world = await ValidatedWorld.create(throwArguments)
    const attachment = {
      name: 'a', contentType: 'text/plain', revpos: 1, digest: 'ZGln', length: 3, storedLength: 3,
      encoding: 'identity' as const, blob: 'b',
    }
    const [newDocument] = await world.thrown({ ...edit('x', null, {}), attachments: [attachment] })
    expect(newDocument).to.have.property('_attachments').deep.equal(
      { a: { content_type: 'text/plain', revpos: 1, digest: 'md5-ZGln', length: 3, stub: true } },
    )
  })

  it('has no old document when a deleted document is created again', async () => {
    const world = await ValidatedWorld.create(throwArguments)
    const first = await world.put('x', null, {})
    await world.put('x', first, {}, true)
    expect((await world.thrown(edit('x', null, {})))[1]).to.equal(null)
  })

  it('refuses single documents of a bulk write, and writes the others in one call of the function', async () => {
    const world = await ValidatedWorld.create(refuseBad, { q: 2 })
    let calls = 0
    const { sandbox } = world
    world.sandbox = { ...sandbox, compile: called => sandbox.compile(called), map: (...given) => sandbox.map(...given),
      call: (...given) => { calls++; return sandbox.call(...given) } }
    const node = world.coordinator('b')
    const writes = Array.from({ length: 9 }, (_, n) => edit(`d${n}`, null, n === 4 ? { bad: 1 } : {}))
    const outcomes = await world.during(node.updateDocuments(world.db, writes, { user }, request()))
    expect(outcomes.map(({ kind }) => kind)).to.deep.equal(
      Array.from({ length: 9 }, (_, n) => n === 4 ? 'error' : 'written'),
    )
    expect(outcomes[4]).to.deep.equal(forbidden('bad null'))
    expect(calls).to.equal(1)
    expect((await world.leavesOf('d4')).a).to.deep.equal([])
  })

  it('refuses single documents of a bulk write also when their reasons are too long for one call', async () => {
    const world = await ValidatedWorld.create('doc => { if (doc.bad) throw { forbidden: "x".repeat(doc.bad) } }')
    const bad = 65_000
    const writes = Array.from({ length: 40 }, (_, n) => edit(`d${n}`, null, n === 30 ? {} : { bad }))
    const outcomes = await world.update(writes)
    expect(outcomes.filter(({ kind }) => kind === 'written')).to.have.length(1)
    expect(outcomes[30]).to.have.property('kind', 'written')
    expect(outcomes[39]).to.deep.equal(forbidden('x'.repeat(bad)))
  })

  it('asks all functions, and the first that refuses wins', async () => {
    const world = await ValidatedWorld.create('d => { if (d.a) throw { forbidden: "no a" } }')
    await world.design('w', 'd => { if (d.b) throw { unauthorized: "no b" } }')
    const writes = [{ a: 1, b: 1 }, { b: 1 }, {}].map((value, n) => edit(`d${n}`, null, value))
    const outcomes = await world.update(writes)
    expect(outcomes[0]).to.deep.equal(forbidden('no a'))
    expect(outcomes[1]).to.deep.equal({ ...forbidden('no b'), error: 'unauthorized', status: 401 })
    expect(outcomes[2]).to.have.property('kind', 'written')
  })

  it('reports conflict before forbidden', async () => {
    const world = await ValidatedWorld.create(refuseBad)
    const first = await world.put('x', null, { n: 1 })
    const second = await world.put('x', first, { n: 2 })
    expect(await world.update([edit('x', first, { bad: 1 }), edit('x', null, { bad: 1 })])).to.deep.equal(
      [{ kind: 'conflict' }, { kind: 'conflict' }],
    )
    expect(await world.update([edit('x', second, { bad: 1 })])).to.deep.equal([forbidden('bad 2')])
    expect(await world.update([edit('x', '7-' + 'f'.repeat(32), {})]), 'a parent that no replica has').to.deep.equal(
      [{ kind: 'conflict' }],
    )
  })

  it('reads the parent from a replica that has it', async () => {
    const world = await ValidatedWorld.create(refuseBad, { at: 'c' })
    world.faults.set('c', { kind: 'fail', code: 'storage', verbs: ['storeRevisions'] })
    const first = await world.put('x', null, { n: 1 })
    world.faults.clear()
    expect((await world.leavesOf('x')).c).to.deep.equal([])
    expect(await world.update([edit('x', first, { bad: 1 })])).to.deep.equal([forbidden('bad 1')])
  })

  it('takes an edit of a revision that only one replica has, whichever it is', async () => {
    for (const at of ['a', 'b', 'c']) {
      const world = await ValidatedWorld.create(refuseBad, { at })
      for (const holder of world.nodes) {
        world.isolate(holder)
        const first = edit(`on-${holder}`, null, { n: 1 })
        await world.during(world.coordinator(holder).updateDocuments(world.db, [first], {}, request()))
        world.heal()
        const [outcome] = await world.update([edit(first.id, `1-${first.revisionHash}`, { n: 2 })])
        expect(outcome, `on ${holder} through ${at}`).to.include({ kind: 'written', accepted: false })
      }
    }
  })

  it('answers 503 when no replica that answers has the parent but another one may', async () => {
    const world = await ValidatedWorld.create(refuseBad, { at: 'c' })
    world.faults.set('c', { kind: 'fail', code: 'storage', verbs: ['storeRevisions'] })
    const first = await world.put('x', null, { n: 1 })
    await world.update([edit('y', null, {})])
    world.faults.clear()
    world.isolate('c')
    const [outcome] = await world.update([edit('x', first, { n: 2 })])
    expect(outcome).to.include({ kind: 'error', status: 503 })
  })

  it('answers 409 when a majority lacks the parent, although one replica does not answer', async () => {
    const world = await ValidatedWorld.create(refuseBad)
    const first = await world.put('x', null, { n: 1 })
    world.isolate('b')
    const outcomes = await world.update([edit('x', '7-' + 'f'.repeat(32), {}), edit('x', first, { bad: 1 })])
    expect(outcomes).to.deep.equal([{ kind: 'conflict' }, forbidden('bad 1')])
  })

  it('does not validate design documents, nor writes of the node itself', async () => {
    const world = await ValidatedWorld.create('() => { throw { forbidden: "nothing gets in" } }')
    await world.design('w', '() => {}')
    expect((await world.update([edit('x', null, {})], {}))[0]).to.have.property('kind', 'written')
    const outcomes = await world.update([edit('y', null, {}), edit('_design/z', null, {})])
    expect(outcomes[0]).to.deep.equal(forbidden('nothing gets in'))
    expect(outcomes[1]).to.have.property('kind', 'written')
  })

  it('costs a database without functions no call', async () => {
    const world = new ReplicaWorld({ nodes: ['a'] })
    const node = world.coordinator('a')
    await world.during(node.updateDocuments(world.db, [edit('w', null, {})], { user }, request()))
    world.calls.length = 0
    await node.updateDocuments(world.db, [edit('x', null, {})], { user }, request())
    expect(world.calls.map(({ verb }) => verb)).to.deep.equal(['updateDocuments'])
  })

  it('uses the functions of a design document for every write after it was written on this node', async () => {
    const world = await ValidatedWorld.create('() => {}')
    for (let n = 0; n < 5; n++) {
      await world.design(`d${n}`, `d => { if (d.n === ${n}) throw { forbidden: "${n}" } }`)
      expect(await world.update([edit(`x${n}`, null, { n })])).to.deep.equal([forbidden(String(n))])
    }
  })

  it('never skips the functions: 503 when the design documents cannot be read', async () => {
    const world = await ValidatedWorld.create(refuseBad, { nodes: ['a', 'b', 'c', 'd'], n: 3 })
    const node = world.coordinator('d')
    world.isolate('d')
    const error = await world.during(node.updateDocuments(world.db, [edit('x', null, {})], { user }, request()))
      .catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(ApiError).and.include({ status: 503 })
  })

  it('validates edits without writing them (batch=ok)', async () => {
    const world = await ValidatedWorld.create(refuseBad)
    expect(await world.during(world.node.validateDocuments(
      world.db, [edit('x', null, {}), edit('y', null, { bad: 1 })], user, request(),
    ))).to.deep.equal([undefined, forbidden('bad null')])
    expect((await world.leavesOf('x')).a).to.deep.equal([])
  })

  it('opens parents with many bytes in several steps', async () => {
    const world = await ValidatedWorld.create('(doc, old) => { if (old.n % 2) throw { forbidden: "" + old.n } }')
    const filler = 'x'.repeat(700_000)
    const parents: string[] = []
    for (let n = 0; n < 6; n++) parents.push(await world.put(`d${n}`, null, { n, filler }))
    const outcomes = await world.update(parents.map((parent, n) => edit(`d${n}`, parent, {})))
    expect(outcomes.map(outcome => outcome.kind === 'error' ? outcome.reason : outcome.kind)).to.deep.equal(
      ['written', '1', 'written', '3', 'written', '5'],
    )
  })
})

describe('the validation of revisions with their history', () => {
  it('opens ancestors with many bytes in several steps', async () => {
    const source = '(doc, old) => { if (old.n % 8 === 7) throw { forbidden: "" + old.n } }'
    const world = await ValidatedWorld.create(source, { nodes: ['a'] })
    const filler = 'x'.repeat(700_000)
    const writes: ReplicatedWrite[] = []
    for (let n = 0; n < 16; n++) {
      const [, parent = ''] = (await world.put(`d${n}`, null, { n, filler })).split('-')
      writes.push({ id: `d${n}`, path: { start: 2, ids: ['b'.repeat(32), parent] }, deleted: false, body: bytes({}) })
    }
    const together: number[] = []
    const { sandbox } = world
    const call = sandbox.call.bind(sandbox)
    sandbox.call = (called, argumentLists) => {
      together.push(argumentLists.length)
      return call(called, argumentLists)
    }
    const outcomes = await world.replicate(writes)
    expect(outcomes.flatMap(outcome => outcome.kind === 'error' ? [outcome.reason] : [])).to.deep.equal(['7', '15'])
    expect(Math.max(...together), 'documents in memory').to.be.below(12)
  })

  it('stores those that pass and refuses the others', async () => {
    const world = await ValidatedWorld.create(refuseBad)
    const outcomes = await world.replicate([replicated('x', 1, 'a', { bad: 1 }), replicated('y', 1, 'b')])
    expect(outcomes).to.deep.equal([
      forbidden('bad null'), { kind: 'written', revision: `1-${'b'.repeat(32)}`, accepted: false },
    ])
    expect((await world.leavesOf('x')).b).to.deep.equal([])
  })

  it('accepts a leaf that is stored already, whatever the function says, and keeps its content', async () => {
    const world = await ValidatedWorld.create(refuseBad)
    const write = (start: number, hashes: string): ReplicatedWrite => replicated('x', start, hashes, { bad: 1 })
    await world.during(world.node.storeRevisions(world.db, [write(1, 'a'), write(2, 'ba')], {}, request()))
    expect(await world.replicate([write(2, 'ba'), replicated('x', 2, 'ba', { bad: 2 })])).to.deep.equal(
      Array.from({ length: 2 }, () => ({ kind: 'written', revision: `2-${'b'.repeat(32)}`, accepted: false })),
    )
    const replaced = await world.replicate([write(1, 'a')])
    expect(replaced[0]).to.include({ kind: 'error', error: 'forbidden' })
    const opened = await world.during(world.node.openDocument(world.db, 'x', {}, request()))
    expect(Buffer.from(opened!.body!).toString()).to.equal('{"bad":1}')
  })

  it('gets the nearest ancestor whose body is stored, otherwise the winner', async () => {
    const world = await ValidatedWorld.create(refuseBad)
    await world.during(world.node.storeRevisions(
      world.db, [replicated('x', 1, 'a', { n: 1 }), replicated('x', 3, 'cba', { n: 3 })], {}, request(),
    ))
    expect(await world.replicate([replicated('x', 6, 'fedcba', { bad: 1 })])).to.deep.equal([forbidden('bad 3')])
    expect(await world.replicate([replicated('x', 2, '2a', { bad: 1 })])).to.deep.equal([forbidden('bad 1')])
    expect(await world.replicate([replicated('x', 2, '54', { bad: 1 })]), 'another branch').to.deep.equal(
      [forbidden('bad 3')],
    )
  })
})

describe('a validation function that fails', () => {
  const failing: readonly (readonly [string, string, object])[] = [
    ['throws a text', '() => { throw "plain" }', { error: 'unknown_error', reason: 'plain', status: 500 }],
    [
      'throws another object', '() => { throw { denied: "by rule" } }',
      { error: 'unknown_error', reason: 'by rule', status: 500 },
    ],
    [
      'throws an object with several members', '() => { throw { a: 1, b: 2 } }',
      { error: 'unknown_error', reason: '{"a":1,"b":2}', status: 500 },
    ],
    ['throws an array', '() => { throw ["a"] }', { error: 'unknown_error', reason: '["a"]', status: 500 }],
    ['throws a named error', '() => { throw ["error", "a", "b"] }', { error: 'a', reason: 'b', status: 500 }],
    ['throws an Error', '() => { throw new Error("broken") }', { error: 'unknown_error', status: 500 }],
    ['requires a module that is missing', '() => require("x")', { error: 'invalid_require_path', status: 500 }],
    ['does not compile', 'function (', { error: 'compilation_error', status: 500 }],
  ]
  for (const [what, source, expected] of failing) {
    it(`refuses the write with 500 when it ${what}`, async () => {
      const world = await ValidatedWorld.create(source)
      expect((await world.update([edit('x', null, {})]))[0]).to.include({ kind: 'error', ...expected })
    })
  }

  it('accepts the write whatever it returns', async () => {
    const world = await ValidatedWorld.create('() => ({ forbidden: "returned" })')
    expect((await world.update([edit('x', null, {})]))[0]).to.have.property('kind', 'written')
  })

  it('refuses the writes when it is in a language that is not available', async () => {
    const world = await ValidatedWorld.create('() => {}')
    await world.design('q', '() => {}', { language: 'erlang' })
    expect((await world.update([edit('x', null, {})]))[0]).to.include({ kind: 'error', status: 501 })
  })

  for (const [code, status] of [['timeout', 500], ['memory', 500], ['crashed', 500]] as const) {
    it(`refuses the write with ${status} after the failure '${code}' of the sandbox`, async () => {
      const world = await ValidatedWorld.create('() => {}')
      world.sandbox = { ...world.sandbox, call: () => Promise.reject(new SandboxError(code, 'it failed')) }
      const node = world.coordinator('b')
      const [outcome] = await world.during(node.updateDocuments(world.db, [edit('x', null, {})], { user }, request()))
      expect(outcome).to.include({ kind: 'error', status })
    })
  }

  for (const code of ['overloaded', 'unsupported', 'closed'] as const) {
    it(`answers 503 with Retry-After, and writes nothing, when the sandbox is '${code}'`, async () => {
      const world = await ValidatedWorld.create('() => {}')
      world.sandbox = { ...world.sandbox, call: () => Promise.reject(new SandboxError(code, 'it failed')) }
      const node = world.coordinator('b')
      const error = await world.during(node.updateDocuments(world.db, [edit('x', null, {})], { user }, request()))
        .catch((thrown: unknown) => thrown)
      expect(error).to.be.instanceOf(ApiError).and.include({ status: 503 })
      expect((error as ApiError).headers).to.have.property('Retry-After')
      expect((await world.leavesOf('x')).a).to.deep.equal([])
    })
  }
})

describe('the validation of writes by a selector', () => {
  const validated = async (selector: object): Promise<ValidatedWorld> => {
    const world = await ValidatedWorld.create('() => {}')
    await world.design('rule', selector, { language: 'query' })
    return world
  }
  const refused = (reason: string): WriteOutcome =>
    forbidden(`The document does not pass _design/rule, which requires ${reason}`)

  it('refuses writes with a reason when the stored document has no selector', async () => {
    const world = await ValidatedWorld.create('() => {}')
    await world.design('rule', 'function (newDoc) {}', { language: 'query' })
    const [outcome] = await world.update([edit('x', null, {})])
    expect(outcome).to.include({ kind: 'error', status: 500 }).and.have.property('reason')
      .that.matches(/_design\/rule is not a valid selector.*Correct or delete the design document/)
  })

  it('accepts what matches, and otherwise names the first condition that is not met', async () => {
    const world = await validated({ newDoc: { type: { $in: ['a', 'b'] }, n: { $gt: 1 } } })
    const [passed, missing, wrong] = await world.update([
      edit('x', null, { type: 'a', n: 2 }), edit('y', null, { n: 2 }), edit('z', null, { type: 'b', n: 1 }),
    ])
    expect(passed).to.have.property('kind', 'written')
    expect(missing).to.deep.equal(refused('{"newDoc.type":{"$in":["a","b"]}}'))
    expect(wrong).to.deep.equal(refused('{"newDoc.n":{"$gt":1}}'))
  })

  it('sees the old document, which is null for a new one', async () => {
    const world = await validated({ $or: [{ oldDoc: null }, { 'oldDoc.open': true }] })
    const revision = await world.put('x', null, { open: true })
    const locked = await world.put('y', null, { open: false })
    const outcomes = await world.update([edit('new', null, {}), edit('x', revision, {}), edit('y', locked, {})])
    expect(outcomes.map(({ kind }) => kind)).to.deep.equal(['written', 'written', 'error'])
  })

  it('sees the user and the security object', async () => {
    const world = await validated({ 'userCtx.name': 'ann', 'secObj.open': true })
    world.setDatabase({ ...world.db, security: { open: true } })
    const [own] = await world.update([edit('x', null, {})])
    const [others] = await world.update([edit('y', null, {})], { user: { name: 'bob', roles: [] } })
    expect([own!.kind, others]).to.deep.equal(['written', refused('{"userCtx.name":{"$eq":"ann"}}')])
  })

  it('refuses all writes when it is not valid, because validation is never skipped', async () => {
    const world = await validated({ newDoc: { $foo: 1 } })
    expect((await world.update([edit('x', null, {})]))[0]).to.deep.include({
      kind: 'error', status: 500,
      reason: 'Writes are refused because validate_doc_update of _design/rule is not a valid selector: '
        + 'Invalid operator: $foo. Correct or delete the design document.',
    })
  })
})
