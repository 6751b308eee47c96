import { NodeHttpListener } from '@sectional/runtime'
import { expect } from 'chai'
import { refuseUnusableAddresses } from '../src/configuration/listening-addresses.ts'
import { LiveConfiguration } from '../src/configuration/live-configuration.ts'

describe('addresses on which a node listens', () => {
  it('are refused over HTTP when the node cannot listen on them', async () => {
    const http = new NodeHttpListener()
    const taken = await http.listen({ host: '127.0.0.1', port: 0 }, () => {})
    const closed = await http.listen({ host: '127.0.0.1', port: 0 }, () => {})
    const [running, free] = [taken.address.port, closed.address.port]
    await closed.close(0)
    const configuration = await LiveConfiguration.load({
      read: async () => [{ name: 'local.ini', text: `[chttpd]\nport = ${running}\n` }], write: async () => {},
    }, {})
    refuseUnusableAddresses(configuration, http)
    const set = (section: string, key: string, value: string): Promise<string | undefined> =>
      configuration.set(section, key, value, { persist: false }).then(() => undefined, (error: Error) => error.message)
    try {
      for (const host of ['no-such-host.invalid', '203.0.113.7']) {
        expect(await set('cluster', 'bind_address', host), host).to.include(`cluster/bind_address = "${host}": `)
          .and.to.include(host).and.to.include('Nothing was changed')
        expect(configuration.get('cluster', 'bind_address')).to.not.equal(host)
      }
      for (const section of ['chttpd', 'cluster']) {
        for (const host of ['127.0.0.1', 'localhost', '0.0.0.0']) {
          expect(await set(section, 'bind_address', host), host).to.equal(undefined)
        }
      }
      expect(await set('cluster', 'port', String(running))).to.include(`Port ${running} is that of chttpd/port`)
      expect(await set('chttpd', 'port', String(free))).to.equal(undefined)
      expect(await set('cluster', 'port', String(free))).to.include('is that of chttpd/port')
      expect(await set('cluster', 'port', String(running)), 'of the running listener').to.include('EADDRINUSE')
      expect(await set('chttpd', 'port', '15984')).to.include('Port 15984 is that of cluster/port')
      expect(await set('chttpd', 'port', '0')).to.equal(undefined)
    } finally {
      await taken.close(0)
    }
  })

  it('are applied before they are stored, and the earlier ones again when they cannot be stored', async () => {
    const files = { read: async () => [{ name: 'local.ini', text: '' }], write: async () => {} }
    const configuration = await LiveConfiguration.load(files, {})
    const applied: unknown[] = []
    configuration.applyFirst(async settings => {
      const port = settings.get('chttpd')!.get('port')
      if (port === '80') throw new Error('80 is not permitted')
      applied.push([port, configuration.get('chttpd', 'port')])
    })
    const persist = { persist: true }
    const refused = (change: Promise<void>): Promise<string> =>
      change.then(() => 'accepted', ({ status, message }) => `${status} ${message}`)
    await configuration.set('chttpd', 'port', '6001', persist)
    expect(await refused(configuration.set('chttpd', 'port', '80', persist)))
      .to.equal('400 chttpd/port: 80 is not permitted')
    files.read = async () => [{ name: 'local.ini', text: '[chttpd]\nport = 6001\n' }]
    files.write = async () => { throw Object.assign(new Error('read-only'), { code: 'EROFS' }) }
    expect(await refused(configuration.set('chttpd', 'port', '6002', persist))).to.match(/^503 .*EROFS/)
    expect(await refused(configuration.delete('chttpd', 'port', persist))).to.match(/^503 .*EROFS/)
    expect(applied).to.deep.equal(
      [['6001', '5984'], ['6002', '6001'], ['6001', '6001'], ['5984', '6001'], ['6001', '6001']],
    )
  })
})
