/** How fast bare classic-level makes documents durable: synced batches, one after the other. Prints documents per second and their CPU time. */
import { ClassicLevel } from 'classic-level'

const [folder, batchText, secondsText, bytesText] = process.argv.slice(2) as [string, string, string, string]
const level = new ClassicLevel<Buffer, Buffer>(folder, { keyEncoding: 'buffer', valueEncoding: 'buffer', writeBufferSize: 16 * 1024 * 1024, compression: true })
await level.open()
const body = Buffer.from(JSON.stringify({ number: 123456, name: 'document 123456', text: 'x'.repeat(Number(bytesText) - 60) }))

let documents = 0
const cpuBefore = process.cpuUsage()
const startedAt = performance.now()
while (performance.now() - startedAt < Number(secondsText) * 1000) {
  const batch = level.batch()
  for (let index = 0; index < Number(batchText); index++) batch.put(Buffer.from(`level-${documents++}`), body)
  await batch.write({ sync: true })
}
const cpu = process.cpuUsage(cpuBefore)
console.log(JSON.stringify({ perSecond: documents / ((performance.now() - startedAt) / 1000), cpuUs: (cpu.user + cpu.system) / documents }))
await level.close()
