import { expect } from 'chai'
import { LiveConfiguration } from '../src/configuration/live-configuration.ts'

const persist = { persist: true }

describe('addresses in the configuration', () => {
  const load = (text: string): Promise<LiveConfiguration> => LiveConfiguration.load({
    read: async () => [{ name: 'local.ini', text }, { name: 'changes.ini', text: '' }], write: async () => {},
  }, {})
  const refused = (work: Promise<unknown>): Promise<string | undefined> =>
    work.then(() => undefined, (error: Error) => error.message)

  const hosts = [
    '127.0.0.1', '0.0.0.0', '::', '::1', 'fe80::1%eth0', '::ffff:10.0.0.1', 'localhost', 'db-1.example.org', 'a.b.',
    'node_1', '1.db.example', 'any',
  ]
  const wrong = [
    'all', 'ALL', 'Any', '*',
    '256.0.0.1', '127.1', '10.0.0', '1', '[::1]', '::1::', 'localhost:5984', '10.0.0.1:80', 'a b',
    'http://localhost', '-a', 'a..b', 'a/b', `${'x'.repeat(64)}.example`, `${'x.'.repeat(127)}xy`,
  ]

  it('are IP addresses or names of hosts where the node listens', async () => {
    const configuration = await load('')
    for (const name of ['chttpd', 'cluster']) {
      for (const host of hosts) await configuration.set(name, 'bind_address', host, persist)
      for (const host of [...wrong, '']) {
        const reason = await refused(configuration.set(name, 'bind_address', host, persist))
        expect(reason, host).to.include(`${name}/bind_address = ${JSON.stringify(host.slice(0, 100))}: only an IPv4`)
          .and.to.include('0.0.0.0 is all addresses of IPv4')
      }
    }
  })

  it('are refused with their place at the start and at a reload', async () => {
    const text = '[chttpd]\nbind_address = all\n[cluster]\nadvertised_address = http://x:1\n[ssl]\nbind_address = a b\n'
    let files = text
    const configuration = await LiveConfiguration.load(
      { read: async () => [{ name: 'local.ini', text: files }], write: async () => {} }, {},
    )
    expect(await refused(configuration.check()))
      .to.match(/^local\.ini line 2: \[chttpd\] bind_address = "all": only an/m)
      .and.to.match(/^local\.ini line 4: \[cluster\] advertised_address = "http:\/\/x:1": only host:port/m)
      .and.to.match(/^local\.ini line 6: \[ssl\] bind_address = "a b": only an IPv4/m)
    files = ''
    await configuration.reload()
    files = text
    expect(await refused(configuration.reload())).to.include('line 2: [chttpd] bind_address = "all"')
    files = '[ssl]\nbind_address =\n'
    await configuration.check()
  })

  it('of other nodes have a host and a port', async () => {
    const configuration = await load('')
    for (const address of ['', 'a:1', '10.0.0.1:65535', '[::1]:5', 'db-1.example.org:15984']) {
      await configuration.set('cluster', 'advertised_address', address, persist)
    }
    for (const address of ['a', ':1', 'a:65536', '10.0.0.256:1', '[a]:1', 'a b:1', 'http://a:1', 'any:1']) {
      expect(await refused(configuration.set('cluster', 'advertised_address', address, persist)), address)
        .to.include('only host:port')
    }
    const secret = 's'.repeat(32)
    const seeds = await load(`[cluster]\nsecret = ${secret}\nseedlist = a:1, b c:2\n`)
    expect(await refused(seeds.check())).to.include('[cluster] seedlist has "b c:2": only host:port')
  })
})
