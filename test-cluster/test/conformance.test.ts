import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { TestCluster } from '../src/test-cluster.ts'

/** The recorded scenarios lie beside the checkout, not in it. */
const conformance = fileURLToPath(new URL('../../../shared/conformance/', import.meta.url))
const parts = ['documents', 'server']
const listFile = fileURLToPath(new URL('../conformance-differences.txt', import.meta.url))
/** A listed step behind this agrees on some runs: what it asks depends on which replicas have answered by then. */
const sometimes = '? '
const listHead = '# Steps of the recorded scenarios (documents, server) whose answers still differ. May only shrink:\n# UPDATE_DIFFERENCES=1 npm run test:cluster -- --grep conformance   writes it anew.\n# "? ": agrees on some runs.\n'

interface ScenarioReport { readonly name: string; readonly results: readonly { readonly index: number; readonly do: string; readonly ok: boolean }[] }

describe('conformance with the recorded scenarios', function () {
  this.timeout(300_000)

  it('differs on three nodes only where the list says so', async function () {
    if (!existsSync(conformance)) return this.skip()
    const folder = mkdtempSync(join(tmpdir(), 'sectional-conformance-'))
    const cluster = await TestCluster.start({ nodes: 3 })
    try {
      const differing = await run(cluster.node(1).http.url, join(folder, 'report.json'))
      const lines = readFileSync(listFile, 'utf8').split('\n').filter(line => line !== '' && !line.startsWith('#'))
      const allowed = lines.filter(line => line.startsWith(sometimes)).map(line => line.slice(sometimes.length))
      const listed = lines.filter(line => !line.startsWith(sometimes))
      const certain = differing.filter(step => !allowed.includes(step))
      if (process.env.UPDATE_DIFFERENCES) return writeFileSync(listFile, `${listHead}${[...allowed.map(step => sometimes + step), ...certain].join('\n')}\n`)
      expect(certain.filter(step => !listed.includes(step)), 'steps that used to agree').to.deep.equal([])
      expect(listed.filter(step => !certain.includes(step)), 'steps that agree now: take them off the list').to.deep.equal([])
    } finally {
      await cluster.close(this.test?.state === 'failed')
      rmSync(folder, { recursive: true })
    }
  })
})

/** The steps that differ, as `scenario #step METHOD path`; the runner puts the way to the files before names when it is a link. */
async function run(url: string, report: string): Promise<string[]> {
  const runner = spawn(process.execPath, [join(conformance, 'run.mjs'), '--url', url, '--json', report, ...parts.map(part => join(conformance, 'scenarios', part))], { stdio: 'ignore' })
  const [status] = await once(runner, 'exit') as [number]
  expect(status, 'exit status of the runner').to.be.oneOf([0, 1])
  const scenarios = JSON.parse(readFileSync(report, 'utf8')) as ScenarioReport[]
  return scenarios.flatMap(({ name, results }) => results.filter(step => !step.ok).map(step => `${name.replace(/^.*scenarios\//, '')} #${step.index} ${step.do}`)).sort()
}
