import { expect } from 'chai'
import fc from 'fast-check'
import { activeReplicas, adminOnlySecurity, securityDigest } from '../../src/control/cluster-state.ts'
import type { DatabaseSecurity } from '../../src/control/cluster-state.ts'
import type { Command, CommandBody, CommandResult } from '../../src/control/commands.ts'
import { checkCommand, CommandError, decodeCommand, encodeCommand } from '../../src/control/commands.ts'
import { unconfirmedStartsMax } from '../../src/control/node-start.ts'
import { DatabaseMap } from '../../src/control/database-map.ts'
import { databaseOn, shardsOn } from '../../src/control/shard-inventory.ts'
import { applyCommand, initialState } from '../../src/control/state-machine.ts'
import type { ControlState } from '../../src/control/state-machine.ts'
import { decodeState, encodeState } from '../../src/control/state-snapshot.ts'

const nodeNames = ['n1', 'n2', 'n3', 'n4']
const databaseNames = ['db1', 'db2', 'db3']
const incarnations = ['i1', 'i2', 'i3', 'i4', 'i5', 'i6']
const node = fc.constantFrom(...nodeNames)
const name = fc.constantFrom(...databaseNames)
const incarnation = fc.constantFrom(...incarnations)

const bodies: fc.Arbitrary<CommandBody> = fc.oneof(
  fc.record({
    type: fc.constant('create-database' as const), name, incarnation, q: fc.integer({ min: 1, max: 4 }),
    n: fc.integer({ min: 1, max: 5 }), partitioned: fc.boolean(), seed: fc.nat(),
  }),
  fc.record({ type: fc.constant('delete-database' as const), name, incarnation }),
  fc.record({
    type: fc.constant('set-security' as const), name, incarnation, security: fc.constant({ members: {} }),
    replaces: fc.constantFrom(securityDigest({ members: {} }), securityDigest(adminOnlySecurity)),
  }, { requiredKeys: ['type', 'name', 'incarnation', 'security'] }),
  fc.record({
    type: fc.constant('set-database-option' as const), name, incarnation, option: fc.constant({ revsLimit: 7 }),
  }),
  fc.record({
    type: fc.constant('set-setting' as const), section: fc.constantFrom('a', 'b'), key: fc.constantFrom('x', 'y'),
    value: fc.option(fc.string()),
  }),
  node.chain(one => fc.record({
    type: fc.constant('admit-node' as const), node: fc.constant(one), address: fc.constant(`${one}:1`),
    zone: fc.constantFrom(null, 'east', 'west'), fresh: fc.boolean(),
  })),
  fc.record({ type: fc.constant('forget-node' as const), node }),
  fc.record({ type: fc.constant('remove-node' as const), node }),
  fc.record({ type: fc.constant('extend-databases' as const), names: fc.subarray(databaseNames) }),
  fc.record({
    type: fc.constant('replica-damaged' as const), incarnation, range: fc.constant({ begin: 0, end: 0xffffffff }), node,
  }),
  fc.record({
    type: fc.constant('replica-filled' as const), incarnation, range: fc.constant({ begin: 0, end: 0xffffffff }), node,
  }),
)
const commands: fc.Arbitrary<Command[]> = fc
  .array(fc.tuple(bodies, fc.integer({ min: 0, max: 80 })), { maxLength: 40, size: 'max' })
  .map(list => list.map(([body, id]) => ({ ...body, id: `c${id}` })))

function run(list: readonly Command[]): ControlState {
  return list.reduce((state, command, at) => applyCommand(state, at + 1, command).state, initialState('c'))
}

function checkInvariants(state: ControlState): void {
  for (const database of state.databases.values()) {
    for (const shard of database.shards) {
      const nodes = shard.replicas.map(replica => replica.node)
      expect(new Set(nodes).size, 'a node holds one replica of a shard').to.equal(nodes.length)
      expect(nodes.length).to.be.at.most(database.n)
      for (const one of nodes) expect(state.nodes, 'replicas lie on members').to.have.property(one)
      if (nodes.length > 0) expect(activeReplicas(shard).length, 'somebody counts').to.be.greaterThan(0)
    }
    expect(database.shards[0]?.range.begin).to.equal(0)
    expect(database.shards.at(-1)?.range.end).to.equal(0xffffffff)
  }
  for (const lost of state.lost) expect(state.nodes).to.have.property(lost)
}

const goOn = async (): Promise<void> => {}

describe('the metadata state machine', () => {
  it('keeps its invariants whatever is proposed, and loses nothing in a snapshot', () => {
    return fc.assert(fc.asyncProperty(commands, commands, async (list, others) => {
      const state = run(list)
      checkInvariants(state)
      // The result does not depend on the state that the node had before.
      expect(await decodeState(await encodeState(state, goOn), run(others), goOn)).to.deep.equal(state)
    }), { numRuns: 300 })
  })

  it('reads snapshots of version 1, which were one JSON object', async () => {
    const old = {
      version: 1, clusterId: 'c', index: 7, nodes: { n1: { name: 'n1', address: 'n1:1', zone: null } }, settings: {},
      lost: [], recent: [], names: ['n1'],
      databases: [{
        name: 'db', incarnation: 'i', partitioned: false, n: 1, shards: [[0, 0xffffffff, 1]], security: {},
        revsLimit: 1, purgedInfosLimit: 1, autoPurge: {},
      }],
    }
    const state = await decodeState(Buffer.from(JSON.stringify(old)), initialState('c'), goOn)
    expect(state.databases.get('db')?.shards).to.deep.equal(
      [{ range: { begin: 0, end: 0xffffffff }, replicas: [{ node: 'n1', filling: true }] }],
    )
    expect([state.clusterId, state.index, Object.keys(state.nodes)]).to.deep.equal(['c', 7, ['n1']])
  })

  it('is encoded and decoded in slices, and keeps what a snapshot does not change', async () => {
    let pauses = 0
    const pause = async (): Promise<void> => { pauses += 1 }
    const create = (name: string, at: number, state = initialState('c')) =>
      applyCommand(state, at, {
        type: 'create-database', id: name, name, incarnation: `of ${name}`, q: 1, n: 1, partitioned: false, seed: 0,
      }).state
    let state = run([{ type: 'admit-node', id: 'a', node: 'n1', address: 'n1:1', zone: null, fresh: true }])
    for (let at = 0; at < 2200; at += 1) state = create(`db${at}`, at + 2, state)
    const bytes = await encodeState(create('new', 5000, state), pause)
    expect(pauses).to.equal(8)
    const decoded = await decodeState(bytes, create('gone', 4000, state), pause)
    expect(pauses).to.equal(17)
    expect([...DatabaseMap.changed(state.databases, decoded.databases)].map(({ before, after }) =>
      [before?.name, after?.name])).to.deep.equal([[undefined, 'new']])
  })

  it('continues from a snapshot as it would have without one', () => {
    return fc.assert(fc.asyncProperty(commands, fc.nat(), async (list, cut) => {
      const at = cut % (list.length + 1)
      const restored = await decodeState(await encodeState(run(list.slice(0, at)), goOn), initialState('c'), goOn)
      const resumed = list.slice(at)
        .reduce((state, command, step) => applyCommand(state, at + step + 1, command).state, restored)
      expect(resumed).to.deep.equal(run(list))
    }))
  })

  it('marks a damaged replica as filling, beside other filling ones, when another replica counts', () => {
    const admitted = ['n1', 'n2', 'n3'].map((one): CommandBody => ({
      type: 'admit-node', node: one, address: `${one}:1`, zone: null, fresh: true,
    }))
    const whole = { begin: 0, end: 0xffffffff }
    const create: CommandBody = {
      type: 'create-database', name: 'db1', incarnation: 'i1', q: 1, n: 3, partitioned: false, seed: 0,
    }
    const before = run([...admitted, create].map((body, at) => ({ ...body, id: `a${at}` })))
    const damaged = (state: ControlState, one: string): ReturnType<typeof applyCommand> =>
      applyCommand(state, state.index + 1, {
        type: 'replica-damaged', incarnation: 'i1', range: whole, node: one, id: `d${state.index}`,
      })
    const counting = (state: ControlState): string[] =>
      activeReplicas(state.databases.get('db1')!.shards[0]!).map(replica => replica.node).sort()
    const first = damaged(before, 'n2')
    expect([first.result.kind, counting(first.state)]).to.deep.equal(['done', ['n1', 'n3']])
    const second = damaged(first.state, 'n3')
    expect([second.result.kind, counting(second.state)]).to.deep.equal(['done', ['n1']])
    expect(damaged(second.state, 'n2').result.kind).to.equal('done')
    const last = damaged(second.state, 'n1')
    expect([last.result.kind, counting(last.state)]).to.deep.equal(['refused', ['n1']])
    expect(damaged(second.state, 'n9').result.kind).to.equal('missing')
  })

  it('makes a filling replica count when the node with the only counting one is removed', () => {
    const admitted = ['n1', 'n2', 'n3'].map((one): CommandBody => ({
      type: 'admit-node', node: one, address: `${one}:1`, zone: null, fresh: true,
    }))
    const state = run([
      ...admitted,
      { type: 'create-database', name: 'db1', incarnation: 'i1', q: 1, n: 2, partitioned: false, seed: 0 },
      { type: 'replica-damaged', incarnation: 'i1', range: { begin: 0, end: 0xffffffff }, node: 'n2' },
      { type: 'remove-node', node: 'n1' },
    ].map((body, at) => ({ ...body as CommandBody, id: `a${at}` })))
    expect(state.databases.get('db1')!.shards[0]!.replicas).to.deep.equal([
      { node: 'n2', filling: false }, { node: 'n3', filling: true },
    ])
  })

  it('changes nothing in place', () => {
    fc.assert(fc.property(commands, bodies, (list, body) => {
      const state = run(list)
      const content = (): object => ({ ...state, databases: [...state.databases] })
      const before = structuredClone(content())
      applyCommand(state, list.length + 1, { ...body, id: 'last' })
      expect(content()).to.deep.equal(before)
    }))
  })

  it('applies a repeated command once', () => {
    const admit: Command = { type: 'admit-node', id: '1', node: 'n1', address: 'n1:1', zone: null, fresh: true }
    const create: Command = {
      type: 'create-database', id: '2', name: 'db', incarnation: 'i', q: 1, n: 1, partitioned: false, seed: 0,
    }
    const remove: Command = { type: 'delete-database', id: '3', name: 'db', incarnation: 'i' }
    const state = run([admit, create, remove, create])
    expect(state.databases.size).to.equal(0)
    expect(applyCommand(state, 5, remove).result).to.deep.equal({ kind: 'done' })
    expect(applyCommand(state, 5, { ...remove, id: '4' }).result).to.deep.equal({ kind: 'missing' })
  })

  it('replaces any security object, or only the one from which the new one was derived', async () => {
    const name = 'db1'
    const [ann, bob] = [{ members: { names: ['ann'] } }, { members: { names: ['bob'] } }]
    let state = run([
      { type: 'admit-node', id: 'a', node: 'n1', address: 'n1:1', zone: null, fresh: true },
      { type: 'create-database', id: 'b', name, incarnation: 'i1', q: 1, n: 1, partitioned: false, seed: 1 },
    ])
    const set = (id: string, security: DatabaseSecurity, replaced?: DatabaseSecurity): CommandResult => {
      const command = decodeCommand(encodeCommand({
        type: 'set-security', id, name, incarnation: 'i1', security,
        ...replaced && { replaces: securityDigest(replaced) },
      }))
      const applied = applyCommand(state, state.index + 1, command)
      state = applied.state
      return applied.result
    }
    expect(set('c', ann, adminOnlySecurity)).to.deep.equal({ kind: 'done' })
    expect(set('d', bob, adminOnlySecurity)).to.deep.equal({ kind: 'changed' })
    expect(state.databases.get(name)!.security).to.deep.equal(ann)
    state = await decodeState(await encodeState(state, async () => {}), initialState('c'), async () => {})
    expect(set('d', bob, adminOnlySecurity), 'the command of an earlier attempt').to.deep.equal({ kind: 'changed' })
    expect(set('e', bob, ann)).to.deep.equal({ kind: 'done' })
    expect(set('f', {}), 'a command without it, as earlier versions propose it').to.deep.equal({ kind: 'done' })
    expect(state.databases.get(name)!.security).to.deep.equal({})
    expect(() => checkCommand({
      type: 'set-security', id: 'g', name, incarnation: 'i1', security: {}, replaces: 'ann',
    })).to.throw(CommandError, 'set-security: bad replaces')
  })

  it('forgets the start of a member only when its disk is an older copy', () => {
    const admit: Command = {
      type: 'admit-node', id: '1', node: 'n1', address: 'n1:1', zone: null, fresh: true,
      start: { ids: ['s'], confirmed: 0 },
    }
    const forget: Command = { type: 'forget-node', id: '2', node: 'n1' }
    const startOf = (...list: Command[]): string | undefined => run([admit, ...list]).nodes['n1']!.start!.id
    expect(startOf()).to.equal('s')
    expect(startOf(forget)).to.equal('s')
    expect(startOf({ ...forget, outdated: true })).to.equal('')
  })

  it('refuses malformed and unknown commands', () => {
    const good: Command = { type: 'delete-database', id: 'x', name: 'db', incarnation: 'i' }
    expect(decodeCommand(encodeCommand(good))).to.deep.equal(good)
    const bad: unknown[] = [
      null, [], 'x', {}, { type: 'constructor', id: 'x' }, { type: 'toString', id: 'x' },
      { type: 'drop-everything', id: 'x' }, { ...good, id: '' }, { ...good, name: 7 }, { ...good, more: 1 },
      { type: 'set-database-option', id: 'x', name: 'db', incarnation: 'i', option: { revsLimit: 0 } },
      { type: 'set-database-option', id: 'x', name: 'db', incarnation: 'i', option: { incarnation: 'j' } },
      { type: 'admit-node', id: 'x', node: 'n', address: 'no port', zone: null, fresh: true },
      { type: 'set-database-option', id: 'x', name: 'db', incarnation: 'i', option: null },
      { type: 'set-database-option', id: 'x', name: 'db', incarnation: 'i', option: {} },
      {
        type: 'set-database-option', id: 'x', name: 'db', incarnation: 'i',
        option: { revsLimit: 1, purgedInfosLimit: 1 },
      },
      { type: 'set-database-option', id: 'x', name: 'db', incarnation: 'i', option: { autoPurge: 1 } },
      ...[7, {}, { begin: 0 }, { begin: 2, end: 1 }, { begin: 0, end: 2 ** 32 }, { begin: 0, end: 1, more: 1 }]
        .map(range => ({ type: 'replica-filled', id: 'x', incarnation: 'i', node: 'n', range })),
      ...[
        7, {}, { ids: 'x', confirmed: 0 }, { ids: ['x'], confirmed: -1 }, { ids: ['x'], confirmed: 0, more: 1 },
        { ids: Array.from({ length: unconfirmedStartsMax + 1 }, (_, at) => `s${at}`), confirmed: 0 },
      ]
        .map(start => ({ type: 'admit-node', id: 'x', node: 'n', address: 'n:1', zone: null, fresh: true, start })),
      { type: 'admit-node', id: 'x', node: 'n', address: 'n:65536', zone: null, fresh: true },
      { type: 'admit-node', id: 'x', node: 'n', address: 7, zone: null, fresh: true },
      { type: 'create-database', id: 'x', name: 'db', incarnation: 'i', q: 1e9, n: 1, partitioned: false, seed: 0 },
    ]
    for (const value of bad) expect(() => checkCommand(value), JSON.stringify(value)).to.throw(CommandError)
    fc.assert(fc.property(fc.jsonValue(), value => { expect(() => checkCommand(value)).to.throw(CommandError) }))
    const large: Command = { type: 'set-setting', id: 'x', section: 'a', key: 'b', value: 'x'.repeat(2 ** 20) }
    expect(() => encodeCommand(large)).to.throw(/the limit is 1048576/)
  })
})

describe('placement', () => {
  const admitted = (zones: readonly (string | null)[]): Command[] =>
    zones.map((zone, at) => ({
      type: 'admit-node', id: `a${at}`, node: `n${at}`, address: `n${at}:1`, zone, fresh: true,
    }))
  const created = (q: number, n: number, seed = 0): Command => ({
    type: 'create-database', id: 'create', name: 'db', incarnation: 'i', q, n, partitioned: false, seed,
  })

  it('gives every node the same number of replicas and of first places when it comes out even', () => {
    const upToSix = fc.integer({ min: 1, max: 6 })
    fc.assert(fc.property(upToSix, upToSix, fc.nat(), (nodes, n, seed) => {
      const state = run([...admitted(Array<null>(nodes).fill(null)), created(nodes * 2, n, seed)])
      const shards = state.databases.get('db')?.shards ?? []
      for (const name of Object.keys(state.nodes)) {
        expect(shardsOn(name, state.databases.get('db')!).length).to.equal(2 * Math.min(n, nodes))
        expect(shards.filter(shard => shard.replicas[0]?.node === name).length).to.equal(2)
      }
    }))
  })

  it('spreads the replicas of a shard over the zones', () => {
    const state = run([...admitted(['east', 'east', 'east', 'west', 'north']), created(8, 3)])
    for (const { replicas } of state.databases.get('db')?.shards ?? []) {
      expect(new Set(replicas.map(replica => state.nodes[replica.node]?.zone)).size).to.equal(3)
    }
  })

  it('returns the shards that a node must host', () => {
    const state = run([...admitted([null, null]), created(2, 1)])
    const [low, high] = state.databases.get('db')!.shards.map(({ range, replicas }) => ({
      shard: { incarnation: 'i', range }, node: replicas[0]!.node,
    }))
    expect(low!.node).to.not.equal(high!.node)
    for (const { shard, node } of [low!, high!]) {
      expect(shardsOn(node, state.databases.get('db')!)).to.deep.equal([shard])
      expect(databaseOn(node, state, shard)?.name).to.equal('db')
    }
    expect(databaseOn(low!.node, state, high!.shard)).to.equal(undefined)
    expect(databaseOn(low!.node, state, { ...low!.shard, incarnation: 'old' })).to.equal(undefined)
  })
})
