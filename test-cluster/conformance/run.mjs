#!/usr/bin/env node
// Conformance runner: replays recorded HTTP scenarios against a server and compares.
//
//   node run.mjs --url http://admin:secret@127.0.0.1:5984 [--only SUBSTRING]... [--verbose] [--json FILE] [--settle MS]
//                [PATH...]
//   node run.mjs --url ... --record PATH...
//
// --record writes what the server answered into the files: for the reference server only. PATH: scenario files or
// folders of them; by default scenarios/ beside this file. --settle: a pause after each write, for servers whose lists
// and views lag behind writes on some replica (CouchDB's three-node cluster needs 250; a good target needs none).
// Exit status: 0 when every step agrees, 1 when one differs, 2 when it could not run.
//
// A scenario file is {"scenarios": [{name, about, steps: [...], unordered?}]}. A step:
//   do      "METHOD /raw/path"  with {db} {db2} {db3} (fresh database names), {tag} (fresh letters for other names),
//           {base} (the server's URL with its admin credentials) and ${var} (saved values) filled in, in bodies and
//           headers too
//   json | text | base64        the request body; in text, \n is sent as written
//   headers                     request headers ("Host" and "Content-Length" are set by the runner)
//   as                          "admin" (default) | "anon" | ["user", "password"]
//   save    {var: "body.path.0.to" | "headers.etag"}   (no variable may be called tag, base, db, db2 or db3)
//   repeat  {until: {path: value}, times, everyMs}   poll until the body has that value
//   waitMs  pause before the step
//   ignore  ["body.path", ...]  parts of the answer that are not compared ("body" or "headers" for all of them)
//   sort    ["body.rows", ...]  arrays compared as sets (an order that the specification does not fix)
//   keep    {"body.results": {db_name: ["{db}"]}}  before anything else, drop the array items whose member is none of
//           the values
//   raw     true: the body is compared as text, byte for byte (framing of feeds), revisions and sequences normalised
//   setup   true: not compared at all, but its status must be what was recorded
//   expect  {status, headers, body}  what the reference server answered, normalised (normaliser.mjs)
import { readFileSync, writeFileSync, readdirSync, statSync } from 'node:fs'
import { join, dirname, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { closeConnections } from './exchange.mjs'
import { runScenario } from './scenario.mjs'

const here = dirname(fileURLToPath(import.meta.url))

function readOptions() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      url: { type: 'string' }, only: { type: 'string', multiple: true, default: [] }, record: { type: 'boolean' },
      verbose: { type: 'boolean', short: 'v' }, json: { type: 'string' }, settle: { type: 'string', default: '0' },
    },
  })
  const url = values.url ?? process.env.TARGET_URL
  if (!url) throw new Error('--url http://admin:password@host:port is needed')
  const paths = positionals.length > 0 ? positionals : [join(here, 'scenarios')]
  return { ...values, url: new URL(url), settle: Number(values.settle), paths }
}

function scenarioFiles(path) {
  if (!statSync(path).isDirectory()) return [path]
  const wanted = name => name.endsWith('.json') || statSync(join(path, name)).isDirectory()
  return readdirSync(path).sort().filter(wanted).flatMap(name => scenarioFiles(join(path, name)))
}

async function runFile(file, options) {
  const content = JSON.parse(readFileSync(file, 'utf8'))
  const report = []
  for (const scenario of content.scenarios) {
    const name = `${relative(here, file).replace(/^scenarios\//, '').replace(/\.json$/, '')} > ${scenario.name}`
    if (options.only.length > 0 && !options.only.some(text => name.includes(text))) continue
    const results = await runScenario(scenario, options.url, options).catch(error => (
      [{ index: -1, do: 'scenario', ok: false, differences: [`did not run: ${error.message}`] }]
    ))
    report.push({ name, results })
    print(name, results.filter(step => !step.ok), options)
  }
  if (options.record) writeFileSync(file, `${JSON.stringify(content, null, 1)}\n`)
  return report
}

function print(name, differing, { verbose }) {
  if (differing.length > 0 || verbose) console.log(`${differing.length > 0 ? 'DIFFERS' : 'agrees '}  ${name}`)
  for (const step of differing) {
    console.log(`    step ${step.index + 1}: ${step.do}`)
    for (const difference of step.differences) console.log(`        ${difference}`)
  }
}

function summarise(report) {
  const files = Map.groupBy(report, ({ name }) => name.split(' > ')[0])
  for (const [file, scenarios] of files) {
    const steps = scenarios.flatMap(({ results }) => results)
    const agreeing = String(steps.filter(step => step.ok).length).padStart(4)
    console.log(`${agreeing} of ${String(steps.length).padStart(4)} steps agree  ${file}`)
  }
  const steps = report.flatMap(({ results }) => results)
  const differing = steps.filter(step => !step.ok)
  const soft = differing.filter(step => step.onlyReason).length
  console.log(`steps: ${steps.length - differing.length} agree, ${differing.length} differ `
    + `(${soft} of them only in a reason text or a header)`)
  const passed = report.filter(({ results }) => results.every(step => step.ok)).length
  console.log(`scenarios: ${passed} passed, ${report.length - passed} failed`)
  return passed === report.length
}

async function main() {
  const options = readOptions()
  const report = []
  for (const file of options.paths.flatMap(scenarioFiles)) report.push(...await runFile(file, options))
  process.exitCode = summarise(report) ? 0 : 1
  if (options.json) writeFileSync(options.json, JSON.stringify(report, null, 1))
  closeConnections()
}

main().catch(error => {
  console.error(`run.mjs: ${error.message}`)
  process.exit(2)
})
