import { RealClock } from '../../src/clock/clock-real.ts'
import { MemoryHttpClient } from '../../src/http/http-client-memory.ts'
import { httpClientSuite } from '../../src/http/http-client-suite.ts'

httpClientSuite('MemoryHttpClient', {
  create: async () => new MemoryHttpClient(new RealClock()),
  serve: async (client, answer) => {
    const { servers } = client as MemoryHttpClient
    const url = `https://server${servers.size}.example/`
    servers.set(url, () => answer)
    return url
  },
  unused: async () => 'https://nobody.example/',
  destroy: async () => {},
})
