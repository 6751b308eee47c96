import { ApiError } from '@sectional/core'
import { expect } from 'chai'
import { PasswordQueue } from '../../src/authentication/password-queue.ts'

describe('the queue of passwords', () => {
  it('runs a bounded number at the same time, others in their order, and refuses more than 100 waiting', async () => {
    const queue = new PasswordQueue(2)
    const begun: number[] = []
    const doors = Array.from({ length: 103 }, () => Promise.withResolvers<void>())
    const runs = doors.map(({ promise }, index) => queue.run(async () => {
      begun.push(index)
      await promise
      return index
    }))
    const refused: unknown = await runs[102]!.catch((error: unknown) => error)
    expect(refused).to.be.instanceOf(ApiError).and.to.include({ status: 503 })
    expect(begun).to.deep.equal([0, 1])
    doors[1]!.resolve()
    expect(await runs[1]).to.equal(1)
    for (const { resolve } of doors) resolve()
    await Promise.all(runs.slice(0, 102))
    expect(begun).to.deep.equal(Array.from({ length: 102 }, (_, index) => index))
  })

  it('continues after a failure', async () => {
    const queue = new PasswordQueue(1)
    const failing = queue.run(() => Promise.reject(new Error('broken')))
    const next = queue.run(async () => 'done')
    expect(await failing.catch((error: Error) => error.message)).to.equal('broken')
    expect(await next).to.equal('done')
  })
})
