import { expect } from 'chai'
import { PageBudget, type PageLimits } from '../../src/paging/page-budget.ts'

const KiB = 1024

describe('the budget of pages', () => {
  /** Opens streams, and returns the limits that each of them got. */
  async function opened(budget: PageBudget, count: number): Promise<{ limits: PageLimits[]; close(): Promise<void> }> {
    const streams = Array.from({ length: count }, () => budget.hold(async function* (limits) { yield limits }))
    const limits: PageLimits[] = []
    for (const stream of streams) limits.push((await stream.next()).value as PageLimits)
    return { limits, close: async () => { for (const stream of streams) await stream.return(undefined) } }
  }

  it('gives streams equal shares, between the least and the largest page', async () => {
    const budget = new PageBudget({ pageRows: 100, pageBytes: 256 * KiB }, 1024 * KiB)
    const { limits, close } = await opened(budget, 1000)
    expect(limits[3]).to.deep.equal({ pageRows: 100, pageBytes: 256 * KiB })
    expect(limits[15]).to.deep.equal({ pageRows: 100, pageBytes: 64 * KiB })
    expect(limits[63]).to.deep.equal({ pageRows: 32, pageBytes: 16 * KiB })
    expect(limits[999]).to.deep.equal({ pageRows: 16, pageBytes: 4 * KiB })
    await close()
    const again = await opened(budget, 1)
    expect(again.limits).to.deep.equal([{ pageRows: 100, pageBytes: 256 * KiB }])
    await again.close()
  })

  it('counts no stream that has ended or failed, and never enlarges a small limit', async () => {
    const budget = new PageBudget({ pageRows: 2, pageBytes: 10 }, KiB)
    for (let n = 0; n < 10; n++) {
      for await (const limits of budget.hold(async function* (given) { yield given })) {
        expect(limits).to.deep.equal({ pageRows: 2, pageBytes: 10 })
      }
      const failing = budget.hold(() => { throw new Error('no stream') })
      expect(await failing.next().catch((error: unknown) => (error as Error).message)).to.equal('no stream')
    }
    const { limits, close } = await opened(new PageBudget({ pageRows: 100, pageBytes: 256 * KiB }, KiB), 1)
    expect(limits).to.deep.equal([{ pageRows: 16, pageBytes: 4 * KiB }])
    await close()
  })
})
