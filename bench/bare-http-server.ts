/**
 * Measures the best that Node's own HTTP server can do: it reads the request and answers with a constant. Prints its
 * port.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const bytes = Number(process.argv[2])
/** A file to answer each request with, in place of text of that many bytes for a GET. */
const file = process.argv[3]
const constant = file === undefined ? Buffer.from(JSON.stringify({ text: 'x'.repeat(bytes) })) : readFileSync(file)
const created = Buffer.from('{"ok":true,"id":"x","rev":"1-0123456789abcdef0123456789abcdef"}\n')

const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    const isConstant = file !== undefined || request.method === 'GET'
    const body = isConstant ? constant : created
    response.writeHead(isConstant ? 200 : 201, {
      'Content-Type': 'application/json', 'Content-Length': body.length,
    })
    response.end(body)
  })
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
