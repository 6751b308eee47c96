/**
 * Measures how fast bare classic-level stores documents durably, in synced batches one after the other. Creating the
 * documents is not included. Prints documents per second and their CPU time.
 */
import { ClassicLevel } from 'classic-level'
import { documentBody, documentId, type IdOrder } from './documents.ts'

const [folder, batchText, secondsText, bytesText, ids] =
  process.argv.slice(2) as [string, string, string, string, IdOrder]
const level = new ClassicLevel<Buffer, Buffer>(folder, {
  keyEncoding: 'buffer', valueEncoding: 'buffer', writeBufferSize: 16 * 1024 * 1024, compression: true,
})
await level.open()

let documents = 0
let writingMs = 0
let writingCpuUs = 0
const endsAt = performance.now() + Number(secondsText) * 1000
while (performance.now() < endsAt) {
  const entries = Array.from({ length: Number(batchText) }, () => {
    const number = documents++
    return [
      Buffer.from(documentId('level', number, ids)), Buffer.from(documentBody(number, Number(bytesText))),
    ] as const
  })
  const startedAt = performance.now()
  const cpuBefore = process.cpuUsage()
  const batch = level.batch()
  for (const [key, value] of entries) batch.put(key, value)
  await batch.write({ sync: true })
  const cpu = process.cpuUsage(cpuBefore)
  writingCpuUs += cpu.user + cpu.system
  writingMs += performance.now() - startedAt
}
console.log(JSON.stringify({ perSecond: documents / (writingMs / 1000), cpuUs: writingCpuUs / documents }))
await level.close()
