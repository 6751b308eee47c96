import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { hasNamespaces } from '../src/private-namespaces.ts'

const child = fileURLToPath(new URL('private-namespaces.child.ts', import.meta.url))

describe('namespaces of their own', function () {
  before(function () {
    if (!hasNamespaces()) this.skip()
  })

  it('lose packets in one direction only, and have disks that become full', () => {
    const words = ['--net', '--mount', '--propagation', 'private', '--', process.execPath, ...process.execArgv, child]
    const { stdout, stderr, status } = spawnSync('unshare', words, { encoding: 'utf8', timeout: 60_000 })
    expect(status, stderr).to.equal(0)
    expect(JSON.parse(stdout)).to.deep.equal({
      paths: { first: ['ready', 'back'], second: ['ready', 'open', 'healed'] },
      disk: ['written', 'written', 'ENOSPC', 'written'],
    })
  })
})
