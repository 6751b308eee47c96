// Replays one scenario: inserts names and saved values, sends each step, and normalises and compares the answer.
import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { compareAnswers, ignoreAt, valueAt } from './comparison.mjs'
import { parseBody, send } from './exchange.mjs'
import { Normaliser } from './normaliser.mjs'

const repeatMs = 200
const databases = ['db', 'db2', 'db3']

/**
 * @param scenario a scenario of a file (format: run.mjs)
 * @param base the server's URL with the administrator's credentials
 * @param options `record`: writes the answers into the steps; `settle`: milliseconds to pause after each write
 * @returns the differences of each step
 */
export async function runScenario(scenario, base, { record, settle = 0 }) {
  const run = new ScenarioRun(scenario, base)
  const results = []
  try {
    for (const [index, step] of scenario.steps.entries()) {
      const got = await run.step(step, settle)
      if (record) step.expect = step.setup ? { status: got.status } : got
      const outcome = record ? { ok: true } : judged(compareAnswers(got, step.expect, step.setup))
      results.push({ index, do: step.do, ...outcome })
    }
  } finally {
    await run.cleanUp(scenario.cleanup ?? [])
  }
  return results
}

function judged(differences) {
  const onlyReason = differences.every(text => text.startsWith('body.reason:') || text.startsWith('header '))
  return { ok: differences.length === 0, differences, onlyReason: differences.length > 0 && onlyReason }
}

class ScenarioRun {
  constructor(scenario, base) {
    const tag = randomBytes(4).toString('hex')
    this.base = base
    this.names = { db: `conf_${tag}`, db2: `conf2_${tag}`, db3: `conf3_${tag}`, tag }
    this.baseUrl = `http://${base.username}:${base.password}@${base.host}`
    const names = ['db2', 'db3', 'db', 'tag'].map(name => [this.names[name], `{${name}}`])
    this.normaliser = new Normaliser([[this.baseUrl, '{base}'], ...names], base, literalsOf(scenario))
    this.saved = {}
  }

  /** @returns the normalised answer */
  async step(step, settle) {
    if (step.waitMs) await pause(step.waitMs)
    const [method, ...words] = step.do.split(' ')
    const path = this.fill(words.join(' ')).replaceAll('<unset ', '<unset-')
    const headers = this.headers(step)
    const body = this.body(step, headers)
    const { response, parsed } = await this.ask(step, { method, path, headers, body })
    if (settle && method !== 'GET' && method !== 'HEAD') await pause(settle)
    for (const [name, place] of Object.entries(step.save ?? {})) {
      const value = valueAt({ body: parsed, headers: response.headers }, place)
      this.saved[name] = typeof value === 'string' ? value.replace(/^"|"$/g, '') : value
    }
    const got = {
      status: response.status, headers: this.normaliser.headers(response.headers),
      body: this.normaliser.value(structuredClone(parsed)),
    }
    for (const place of step.sort ?? []) {
      const list = valueAt(got, place)
      if (Array.isArray(list)) list.sort((a, b) => JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)
    }
    for (const place of step.ignore ?? []) ignoreAt(got, place)
    return got
  }

  /** Sends the request once, or repeats it until the answer has the value that the step waits for. */
  async ask(step, request) {
    const { until = {}, times = 1, everyMs = repeatMs } = step.repeat ?? {}
    let response
    let parsed
    for (let attempt = 0; attempt < times; attempt++) {
      response = await send(this.base, request)
      if (request.method === 'HEAD') parsed = null
      else parsed = step.raw ? { text: response.raw.toString('utf8') } : parseBody(response)
      this.keepWanted(step, parsed)
      const { status } = response
      const value = place => place === 'status' ? status : valueAt({ body: parsed }, place)
      if (Object.entries(until).every(([place, wanted]) => isDeepStrictEqual(value(place), wanted))) break
      await pause(everyMs)
    }
    return { response, parsed }
  }

  /** Removes the list items that the step does not compare. */
  keepWanted(step, parsed) {
    for (const [place, condition] of Object.entries(this.fillDeep(step.keep ?? {}))) {
      const list = valueAt({ body: parsed }, place)
      const wanted = item => Object.entries(condition).every(([key, values]) => [values].flat().includes(item?.[key]))
      if (Array.isArray(list)) list.splice(0, list.length, ...list.filter(wanted))
    }
  }

  headers(step) {
    const given = Object.entries(step.headers ?? {})
    const headers = Object.fromEntries(given.map(([name, value]) => [name, this.fill(value)]))
    const as = step.as ?? 'admin'
    if (as === 'admin') headers.Authorization = this.administrator()
    else if (Array.isArray(as)) headers.Authorization = basic(as.map(text => this.fill(text)).join(':'))
    return headers
  }

  body(step, headers) {
    let body
    if (step.json !== undefined) {
      body = Buffer.from(JSON.stringify(this.fillDeep(step.json)))
      headers['Content-Type'] ??= 'application/json'
    } else if (step.text !== undefined) body = Buffer.from(this.fill(step.text))
    else if (step.base64 !== undefined) body = Buffer.from(step.base64, 'base64')
    if (body) headers['Content-Length'] = body.length
    return body
  }

  administrator() {
    return basic(`${decodeURIComponent(this.base.username)}:${decodeURIComponent(this.base.password)}`)
  }

  async cleanUp(steps) {
    const authorization = { Authorization: this.administrator() }
    for (const step of steps) {
      const [method, ...words] = step.do.split(' ')
      const body = step.json === undefined ? undefined : JSON.stringify(step.json)
      const headers = body ? { ...authorization, 'Content-Type': 'application/json' } : authorization
      await send(this.base, { method, path: this.fill(words.join(' ')), headers, body }).catch(() => {})
    }
    for (const name of databases) {
      const request = { method: 'DELETE', path: `/${this.names[name]}`, headers: authorization }
      await send(this.base, request).catch(() => {})
    }
  }

  fill(text) {
    return text.replace(/\{(db\d?|tag)\}/g, (_, name) => this.names[name]).replaceAll('{base}', this.baseUrl)
      .replace(/\$\{(\w+)\}/g, (_, name) => this.saved[name] ?? `<unset ${name}>`)
  }

  fillDeep(value) {
    if (typeof value === 'string') return this.fill(value)
    if (Array.isArray(value)) return value.map(item => this.fillDeep(item))
    if (!value || typeof value !== 'object') return value
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [this.fill(name), this.fillDeep(member)]))
  }
}

function pause(ms) {
  return new Promise(resolve => setTimeout(resolve, ms))
}

function basic(credentials) {
  return `Basic ${Buffer.from(credentials).toString('base64')}`
}

/** Returns the hashes and dates that the requests of the scenario contain. */
function literalsOf(scenario) {
  const requests = JSON.stringify(scenario.steps.map(({ expect, ...step }) => step))
  return [...requests.matchAll(/[0-9a-f]{32}|\d{4}-\d\d-\d\dT[\d:.]+Z?/g)].map(match => match[0])
}
