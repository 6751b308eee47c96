import { expect } from 'chai'
import { PrometheusMetrics } from '../../src/metrics/metrics-prom.ts'

describe('PrometheusMetrics', () => {
  let metrics: PrometheusMetrics
  beforeEach(() => { metrics = new PrometheusMetrics() })

  it('renders counters, gauges and histograms as Prometheus text', async () => {
    metrics.counter('requests_total', 'Requests', ['code']).add(2, { code: '200' })
    metrics.counter('plain_total', 'Plain').add()
    const gauge = metrics.gauge('open', 'Open')
    gauge.set(5)
    gauge.add(-2)
    metrics.histogram('seconds', 'Time', [], [1, 2]).observe(1.5)
    const text = await metrics.render()
    for (const line of [
      '# TYPE requests_total counter', 'requests_total{code="200"} 2', 'plain_total 1', 'open 3',
      'seconds_bucket{le="2"} 1', 'seconds_sum 1.5',
    ]) {
      expect(text).to.include(line)
    }
  })

  it('gives the same metric for the same name, and refuses another kind', () => {
    metrics.counter('a_total', 'A').add(1)
    metrics.counter('a_total', 'A').add(1)
    expect(() => metrics.gauge('a_total', 'A')).to.throw('another kind')
  })

  it('lists samples, histograms by their parts', async () => {
    metrics.gauge('links', 'Links', ['peer']).set(1, { peer: 'b' })
    metrics.histogram('seconds', 'Time', ['route'], [1]).observe(0.5, { route: 'r' })
    expect(await metrics.samples()).to.have.deep.members([
      { name: 'links', labels: { peer: 'b' }, value: 1 },
      { name: 'seconds_bucket', labels: { le: '1', route: 'r' }, value: 1 },
      { name: 'seconds_bucket', labels: { le: '+Inf', route: 'r' }, value: 1 },
      { name: 'seconds_sum', labels: { route: 'r' }, value: 0.5 },
      { name: 'seconds_count', labels: { route: 'r' }, value: 1 },
    ])
  })

  it('collects before it renders, and keeps nodes of one process apart', async () => {
    const gauge = metrics.gauge('read', 'Read when asked')
    let reads = 0
    metrics.onCollect(async () => gauge.set(++reads))
    expect(await metrics.render()).to.include('read 1')
    expect((await metrics.samples())[0]?.value).to.equal(2)
    expect(await new PrometheusMetrics().samples()).to.deep.equal([])
  })
})
