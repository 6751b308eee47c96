/**
 * Measures the cost of open responses in Node's own HTTP server: it answers each request with a line and leaves the
 * response open. Prints its port.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const open = new Set<object>()

const server = createServer((_request, response) => {
  open.add(response)
  response.on('close', () => open.delete(response))
  response.writeHead(200, { 'Content-Type': 'application/json' })
  response.write('\n')
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
