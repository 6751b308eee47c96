import assert from 'node:assert/strict'
import type { CoordinatorNode, WriteOutcome } from '@sectional/cluster'
import { basic, MemoryNode, type Answer } from '../memory-node.ts'

const path = '/_users/org.couchdb.user:ann'
const logins: Readonly<Record<string, (node: MemoryNode) => Promise<Answer>>> = {
  'Basic credentials': node => node.get('/_session', { authorization: basic('ann', 'pw') }),
  'POST /_session': node => node.post('/_session', { name: 'ann', password: 'pw' }, { authorization: '' }),
}

for (const [kind, login] of Object.entries(logins)) {
  describe(`cached credentials of a user, by ${kind},`, () => {
    let node: MemoryNode
    /** Reads of documents. */
    let reads: number
    let isRefused: boolean
    beforeEach(async () => {
      reads = 0
      isRefused = false
      node = new MemoryNode({ wrap })
      node.configuration.put('chttpd_auth', 'iterations', '3')
      assert.equal((await node.put(path, { name: 'ann', type: 'user', roles: [], password: 'pw' })).status, 201)
      assert.equal((await login(node)).status, 200)
    })
    afterEach(() => node.stop())

    function wrap(coordinator: CoordinatorNode): CoordinatorNode {
      const { openDocument, updateDocuments } = coordinator
      coordinator.openDocument = (...parameters) => {
        reads++
        return openDocument(...parameters)
      }
      const conflict: WriteOutcome = { kind: 'conflict' }
      coordinator.updateDocuments = (...parameters) => (
        isRefused ? Promise.resolve([conflict]) : updateDocuments(...parameters))
      return coordinator
    }

    const stored = async (): Promise<Record<string, unknown>> => {
      await node.clock.advance(0)
      return (await node.get(path)).json
    }
    const refusal = async (): Promise<readonly unknown[]> => {
      const { status, json } = await login(node)
      return [status, json.reason]
    }

    it('cost no hash and no reading', async () => {
      const [hashes, before] = [node.machine.pbkdf2Calls, reads]
      for (let i = 0; i < 3; i++) assert.equal((await login(node)).status, 200)
      assert.deepEqual([node.machine.pbkdf2Calls - hashes, reads - before], [0, 0])
    })

    it('are refused while the iterations of the hash are outside the bounds', async () => {
      node.configuration.put('chttpd_auth', 'min_iterations', '4')
      assert.deepEqual(await refusal(), [403, 'Iteration count is too low for this server'])
      node.configuration.put('chttpd_auth', 'min_iterations', '1')
      node.configuration.put('chttpd_auth', 'max_iterations', '2')
      assert.deepEqual(await refusal(), [403, 'Iteration count is too high for this server'])
      node.configuration.put('chttpd_auth', 'max_iterations', '3')
      assert.equal((await login(node)).status, 200)
    })

    it('renew a hash that has become outdated', async () => {
      const { salt } = await stored()
      node.configuration.put('chttpd_auth', 'iterations', '5')
      assert.equal((await login(node)).status, 200)
      const renewed = await stored()
      assert.deepEqual([renewed['iterations'], renewed['salt']], [5, salt])
      assert.equal((await login(node)).status, 200)
      assert.equal((await stored())['_rev'], renewed['_rev'])
    })

    it('renew it once upgrades are allowed, and not before', async () => {
      node.configuration.put('chttpd_auth', 'upgrade_hash_on_auth', 'false')
      node.configuration.put('chttpd_auth', 'iterations', '5')
      assert.equal((await login(node)).status, 200)
      assert.equal((await stored())['iterations'], 3)
      node.configuration.put('chttpd_auth', 'upgrade_hash_on_auth', 'true')
      assert.equal((await login(node)).status, 200)
      assert.equal((await stored())['iterations'], 5)
    })

    it('try again after a minute when the hash could not be replaced', async () => {
      node.configuration.put('chttpd_auth', 'iterations', '5')
      isRefused = true
      assert.equal((await login(node)).status, 200)
      await node.clock.advance(0)
      isRefused = false
      for (let i = 0; i < 3; i++) assert.equal((await login(node)).status, 200)
      assert.equal((await stored())['iterations'], 3)
      await node.clock.advance(60_000)
      assert.equal((await login(node)).status, 200)
      assert.equal((await stored())['iterations'], 5)
    })
  })
}
