import { expect } from 'chai'
import { isLoggedSetting, isSecretSetting } from '../src/configuration/secret-settings.ts'
import { MemoryCluster } from './memory-cluster.ts'

describe('values of settings', () => {
  it('are secrets as declared, or under an undeclared name that looks like one', () => {
    const secret = [
      'chttpd_auth/secret', 'ssl/password', 'jwt_keys/hmac:a', 'chttpd_auth/secrett', 'chttpd_auth/sercet',
      'couch_httpd_auth/secret', 'replicator/password', 'smoosh/DB_PASSWD', 'x/api_key', 'x/AccessToken', 'x/salt',
      'x/pwd', 'x/credentials', 'jwt_key/hmac:a', 'tokens/a', 'admin/anna', 'secrets/x', 'x/pasword',
    ]
    const shown = [
      'chttpd_auth/iterations', 'jwt_auth/required_claims', 'cluster/tls_key_file', 'chttpd_auth/x_auth_token',
      'vhosts/secret.example.org', 'admins/anna', 'x/colour', 'x/size', 'x/k', 'constructor/size',
    ]
    const hidden = (name: string): boolean => isSecretSetting(...name.split('/') as [string, string])
    expect(secret.filter(name => !hidden(name))).to.deep.equal([])
    expect(shown.filter(hidden)).to.deep.equal([])
  })

  it('are logged when they are declared and no secrets', () => {
    const logged = (name: string): boolean => isLoggedSetting(...name.split('/') as [string, string])
    expect(['uuids/max_count', 'vhosts/x', 'cluster/tls_key_file'].filter(name => !logged(name))).to.deep.equal([])
    expect(['admins/anna', 'jwt_keys/hmac:a', 'chttpd_auth/secret', 'x/colour', 'chttpd/x', 'toString/x']
      .filter(logged)).to.deep.equal([])
  })
})

describe('secrets under names that are not declared', () => {
  let cluster: MemoryCluster
  before(async () => {
    cluster = new MemoryCluster(2, {}, ['[replicator]', 'password = hunter2 of a file', '[audit]', 'output = log'])
    await Promise.all([cluster.start(1), cluster.start(2)])
    await cluster.ready()
  })
  after(() => cluster.close())

  const config = async (number: number, method: string, path: string, json?: unknown): Promise<any> => {
    const { status, body } = await cluster.send(1, method, `/_node/${cluster.names[number - 1]!}/_config${path}`, json)
    expect(status, `${method} ${path}`).to.equal(200)
    return body
  }

  it('are shown by no node, neither as previous values nor in sections', async () => {
    for (const number of [1, 2]) {
      const answers = [
        await config(number, 'PUT', '/chttpd_auth/secrett', 'hunter2'),
        await config(number, 'PUT', '/chttpd_auth/secrett', 'hunter2 again'),
        await config(number, 'GET', '/chttpd_auth/secrett'),
        await config(number, 'GET', '/chttpd_auth'),
        await config(number, 'GET', ''),
        await config(number, 'GET', '/replicator/password'),
        await config(number, 'DELETE', '/chttpd_auth/secrett'),
      ]
      expect([0, 1, 2, 5, 6].map(index => answers[index])).to.deep.equal(['', '****', '****', '****', '****'])
      expect(answers[3].secrett).to.equal('****')
      expect(JSON.stringify(answers)).not.to.include('hunter2')
    }
  })

  it('are not logged, nor are other values of such names', async () => {
    for (const number of [1, 2]) {
      await config(number, 'PUT', '/replicator/password', 'hunter2')
      await config(number, 'PUT', '/replicator/proxy', 'http://me:hunter2@proxy.example')
      await config(number, 'PUT', '/uuids/max_count', '77')
      const changes = cluster.log(number).lines.filter(({ message }) => message === 'a setting was changed')
      expect(changes.slice(-3).map(({ fields }) => fields['value'])).to.deep.equal(['****', '****', '77'])
      const text = JSON.stringify(cluster.log(number).lines)
      expect(text).to.include('"configuration_changed"').and.not.to.include('hunter2')
    }
  })
})
