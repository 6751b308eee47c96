// Sends one large attachment into a running cluster and reads it back, through a node that holds no replica of it, and
// prints the resident memory of every node. A measuring tool, not a test:
//   node bench/attachment-memory.mjs ADMIN:PASSWORD BYTES URL=PID URL=PID ...
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import http from 'node:http'

const [credentials, size, ...places] = process.argv.slice(2)
const bytes = Number(size)
const nodes = places.map(place => {
  const [url, pid] = place.split('=')
  return { url, pid, peak: 0 }
})
const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
const block = randomBytes(1024 * 1024)
const db = `/memory-${Date.now()}`

const sampler = setInterval(() => {
  for (const node of nodes) node.peak = Math.max(node.peak, resident(node.pid))
}, 100)

function resident(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024
}

function request(url, method, path, { headers = {}, send, receive } = {}) {
  return new Promise((resolve, reject) => {
    const options = { method, headers: { authorization, accept: 'application/json', ...headers } }
    const call = http.request(url + path, options, response => {
      const chunks = []
      response.on('data', chunk => receive === undefined ? chunks.push(chunk) : receive(chunk))
      response.on('end', () => resolve({ status: response.statusCode, body: Buffer.concat(chunks).toString() }))
      response.on('error', reject)
    })
    call.on('error', reject)
    if (send === undefined) call.end()
    else send(call)
  })
}

async function pour(call, hash) {
  for (let left = bytes; left > 0; left -= block.length) {
    const chunk = Buffer.from(block.subarray(0, Math.min(left, block.length)))
    chunk.writeDoubleBE(left)
    hash.update(chunk)
    if (!call.write(chunk)) await new Promise(resolve => { call.once('drain', resolve) })
  }
  call.end()
}

function megabytesPerSecond(start) {
  return (bytes / 1e6 / ((performance.now() - start) / 1000)).toFixed(0)
}

await request(nodes[0].url, 'PUT', `${db}?q=1&n=1`)
const { shards } = JSON.parse((await request(nodes[0].url, 'GET', `${db}/_shards`)).body)
const [holder] = Object.values(shards)[0]
const through = nodes.find((_, index) => !holder.startsWith(`node${index + 1}@`))
console.log(`the replica is on ${holder}; the request goes through ${through.url}`)
console.log('before:', nodes.map(node => `${node.url} ${resident(node.pid).toFixed(0)} MB`).join(', '))
const sent = createHash('md5')
let start = performance.now()
const headers = { 'content-type': 'application/x-large', 'content-length': bytes }
const put = await request(through.url, 'PUT', `${db}/doc/big.bin`, { headers, send: call => pour(call, sent) })
console.log(`upload: ${put.status}, ${megabytesPerSecond(start)} MB/s`)
const received = createHash('md5')
start = performance.now()
const got = await request(through.url, 'GET', `${db}/doc/big.bin`, { receive: chunk => { received.update(chunk) } })
console.log(
  `download: ${got.status}, ${megabytesPerSecond(start)} MB/s, equal: ${sent.digest('hex') === received.digest('hex')}`,
)
clearInterval(sampler)
console.log('peak:', nodes.map(node => `${node.url} ${node.peak.toFixed(0)} MB`).join(', '))
await request(nodes[0].url, 'DELETE', db)
