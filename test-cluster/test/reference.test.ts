import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { differenceOf, readExamples, runExample, type ExampleRunner } from '../src/reference-examples.ts'
import { TestCluster } from '../src/test-cluster.ts'

/** Credentials that the pages use. */
const administrator = 'anna:secret'

const reference = fileURLToPath(new URL('../../docs/reference/', import.meta.url))

describe('the examples of docs/reference', () => {
  let cluster: TestCluster | undefined
  let folder: string | undefined
  let runner: ExampleRunner
  before(async function () {
    // The pages show commands with curl.
    if (spawnSync('curl', ['--version']).error !== undefined) return this.skip()
    cluster = await TestCluster.start({ nodes: 1, settings: { 'admins/anna': 'secret' } })
    folder = mkdtempSync(join(tmpdir(), 'sectional-reference-'))
    runner = { address: `http://127.0.0.1:${cluster.node(1).http.port}`, administrator, folder }
  })
  after(async () => {
    await cluster?.close()
    if (folder !== undefined) rmSync(folder, { recursive: true })
  })

  /** Each page starts with a node without databases. */
  afterEach(async () => {
    const { http } = cluster!.node(1)
    const { body: names } = await http.send('GET', '/_all_dbs')
    for (const name of names) expect((await http.send('DELETE', `/${encodeURIComponent(name)}`)).status).to.equal(200)
  })

  for (const page of readdirSync(reference)) {
    it(`get the answers that ${page} shows`, async () => {
      for (const example of readExamples(readFileSync(join(reference, page), 'utf8'))) {
        const came = await runExample(example, runner)
        const difference = example.answer === null ? null : differenceOf(example.answer, came, runner.address)
        const place = `docs/reference/${page}:${example.line}`
        if (difference !== null) expect.fail(`${place}: ${example.command}\nanswers otherwise:\n${difference}`)
      }
    })
  }
})
