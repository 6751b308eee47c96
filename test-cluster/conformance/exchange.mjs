// Sends one request to the server under test, and returns its answer as a value that can be compared.
import http from 'node:http'

const agent = new http.Agent({ keepAlive: true, maxSockets: 4 })
const answerMsMax = 30_000

/** Closes the connections that are kept open, so that the process can end. */
export function closeConnections() {
  agent.destroy()
}

/** @returns {Promise<{ status: number, headers: object, raw: Buffer }>} */
export function send(base, { method, path, headers, body }) {
  return new Promise((resolve, reject) => {
    const options = { host: base.hostname, port: base.port || 80, method, path, headers, agent, timeout: answerMsMax }
    const request = http.request(options, response => {
      const chunks = []
      response.on('data', chunk => chunks.push(chunk))
      response.on('end', () => {
        resolve({ status: response.statusCode, headers: response.headers, raw: Buffer.concat(chunks) })
      })
      response.on('error', reject)
    })
    request.on('timeout', () => request.destroy(new Error('no answer in 30 s')))
    request.on('error', reject)
    if (body !== undefined) request.write(body)
    request.end()
  })
}

/** Parses a body of JSON, lines of JSON, multipart or text. Other bytes are returned as Base64. */
export function parseBody(response) {
  const type = String(response.headers['content-type'] || '')
  const text = response.raw.toString('utf8')
  if (text === '') return null
  if (/^multipart\//.test(type)) {
    const boundary = /boundary="?([^";]+)"?/.exec(type)?.[1]
    return { multipart: parseMultipart(text, boundary) }
  }
  try {
    return JSON.parse(text)
  } catch {
    // The body is not a single JSON value.
  }
  const lines = text.split('\n').filter(line => line.trim() !== '')
  if (lines.length > 1) {
    try {
      return { lines: lines.map(line => JSON.parse(line)) }
    } catch {
      // The body does not consist of lines of JSON.
    }
  }
  if (Buffer.from(text, 'utf8').equals(response.raw)) return { text }
  return { base64: response.raw.toString('base64') }
}

function parseMultipart(text, boundary) {
  return text.split(`--${boundary}`).slice(1, -1).map(part => {
    const [head, ...rest] = part.replace(/^\r\n/, '').split('\r\n\r\n')
    const headers = {}
    for (const line of head.split('\r\n').filter(Boolean)) {
      const colon = line.indexOf(':')
      headers[line.slice(0, colon).trim().toLowerCase()] = line.slice(colon + 1).trim()
    }
    const content = rest.join('\r\n\r\n').replace(/\r\n$/, '')
    const type = headers['content-type'] || ''
    if (/^multipart\//.test(type)) {
      const inner = /boundary="?([^";]+)"?/.exec(type)[1]
      return { headers: { 'content-type': type.split(';')[0] }, parts: parseMultipart(`\r\n${content}\r\n`, inner) }
    }
    let body = content
    try {
      body = JSON.parse(content)
    } catch {
      // The body consists of raw bytes.
    }
    return { headers, body }
  })
}
