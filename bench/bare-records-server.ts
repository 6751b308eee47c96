/**
 * A server of records and files that consists of bare parts: classic-level scanned into a node:http response, and
 * bodies piped from and to files. Argument: a folder. Prints its port.
 *
 * `PUT /records/{kind}` stores one record for each line; `GET /records/{kind}` scans them; `POST /records/{kind}` with
 * `{"docs":[{"id":..}]}` returns the records whose line has one of the ids; `PUT /files/{name}` and `GET /files/{name}`
 * store and return files.
 */
import { createReadStream, createWriteStream } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { ClassicLevel } from 'classic-level'

const [folder] = process.argv.slice(2) as [string]
const rowsOfPage = 1000
const level = new ClassicLevel<Buffer, Buffer>(join(folder, 'records'), {
  keyEncoding: 'buffer', valueEncoding: 'buffer', writeBufferSize: 16 * 1024 * 1024, cacheSize: 64 * 1024 * 1024,
})
await level.open()

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

async function store(kind: string, lines: string): Promise<void> {
  const batch = level.batch()
  for (const [index, line] of lines.split('\n').entries()) {
    const id = /"id":"([^"]+)"/.exec(line)?.[1] ?? String(index)
    batch.put(Buffer.from(`${kind}/${id}`), Buffer.from(`${line}\n`))
  }
  await batch.write({ sync: true })
  await level.compactRange(Buffer.from(`${kind}/`), Buffer.from(`${kind}0`))
}

async function write(response: ServerResponse, values: readonly Buffer[]): Promise<void> {
  if (!response.write(Buffer.concat(values))) await new Promise(resolve => { response.once('drain', resolve) })
}

async function scan(kind: string, response: ServerResponse): Promise<void> {
  const iterator = level.values({
    gte: Buffer.from(`${kind}/`), lt: Buffer.from(`${kind}0`), highWaterMarkBytes: 1024 * 1024,
  })
  for (let page = await iterator.nextv(rowsOfPage); page.length > 0; page = await iterator.nextv(rowsOfPage)) {
    await write(response, page)
  }
  await iterator.close()
  response.end()
}

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [, area, name] = request.url!.split('/') as [string, string, string]
  if (area === 'files' && request.method === 'PUT') {
    await pipeline(request, createWriteStream(join(folder, name), { flush: true }))
    response.writeHead(201).end()
  } else if (area === 'files') {
    await pipeline(createReadStream(join(folder, name)), response)
  } else if (request.method === 'PUT') {
    await store(name, String(await bodyOf(request)))
    response.writeHead(201).end()
  } else if (request.method === 'GET') {
    response.writeHead(200, { 'content-type': 'application/json' })
    await scan(name, response)
  } else {
    const { docs } = JSON.parse(String(await bodyOf(request))) as { readonly docs: readonly { readonly id: string }[] }
    const found = await level.getMany(docs.map(({ id }) => Buffer.from(`${name}/${id}`)))
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(Buffer.concat(found.map(value => value!)))
  }
}

const server = createServer((request, response) => { void handle(request, response) })
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
