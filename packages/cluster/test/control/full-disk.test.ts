import { expect } from 'chai'
import { ApiError } from '@sectional/core'
import { ControlWorld } from './control-world.ts'

const options = { q: 1, n: 3, partitioned: false }

describe('the control plane of a node whose disk is full', () => {
  let world: ControlWorld
  let full: string
  let other: string
  beforeEach(async () => {
    world = new ControlWorld()
    await world.form()
    await world.during(world.plane('n1').createDatabase('old', options))
    const leader = await world.leader()
    full = world.running().find(name => name !== leader)!
    other = world.running().find(name => name !== leader && name !== full)!
    world.disk(full).setFaults({ failWrite: () => 'full', failRecovery: () => 'full' })
    await world.during(world.plane(other).createDatabase('new', options))
  })
  afterEach(async () => {
    await world.stopAll()
    expect(world.fatal).to.deep.equal([])
  })

  const failure = async (work: Promise<unknown>): Promise<ApiError> => {
    const error = await world.during(work).then(() => null, (reason: unknown) => reason)
    if (!(error instanceof ApiError)) throw new Error(`expected an ApiError, not ${String(error)}`)
    return error
  }

  it('does not call a database missing that was created elsewhere', async () => {
    const error = await failure(world.plane(full).confirmAbsent('new'))
    expect([error.status, error.headers['Retry-After']]).to.deep.equal([503, '5'])
    expect(error.reason).to.include('its disk is full')
    world.disk(full).setFaults({})
    await world.until(() => world.plane(full).state()?.databases.has('new') === true, 'it has room and follows')
    expect(await world.during(world.plane(full).confirmAbsent('never'))).to.equal(undefined)
  })

  it('accepts a deletion that the others have decided', async () => {
    expect(await world.during(world.plane(full).deleteDatabase('old'))).to.equal('accepted')
    expect(world.plane(other).state()?.databases.has('old')).to.equal(false)
  })

  it('says why it can neither carry out a deletion nor promise one', async () => {
    world.hub.partition([full], world.running().filter(name => name !== full))
    const error = await failure(world.plane(full).deleteDatabase('old'))
    expect([error.status, error.headers['Retry-After']]).to.deep.equal([503, '5'])
    expect(error.reason).to.include('its disk is full')
    expect(world.plane(full).state()?.databases.has('old')).to.equal(true)
  })

  it('reports a creation that was decided but is not visible on this node yet', async () => {
    const error = await failure(world.plane(full).createDatabase('third', options))
    expect(error.status).to.equal(503)
    expect(error.reason).to.include('has decided').and.include('its disk is full')
    expect(world.plane(other).state()?.databases.has('third')).to.equal(true)
  })
})
