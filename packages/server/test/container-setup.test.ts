import { spawnSync } from 'node:child_process'
import { pbkdf2Sync } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const script = fileURLToPath(new URL('../../../deploy/setup.mjs', import.meta.url))

describe('the setup of docker-compose.yml', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'container-setup-'))
    for (const name of ['settings', 'private']) mkdirSync(join(folder, name))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  function setup(command: string, env: Record<string, string> = {}): { readonly status: number | null; said: string } {
    const words = [script, command, join(folder, 'settings'), join(folder, 'private')]
    const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8', env })
    return { status, said: stdout + stderr }
  }

  const settings = (): string => readFileSync(join(folder, 'settings/10-cluster.ini'), 'utf8')

  /** Whether the settings admit the administrator with this password. */
  function admits(password: string): boolean {
    const [, key, salt, iterations] = /^admin = -pbkdf2:sha256-(\w+),(\w+),(\d+)$/m.exec(settings())!
    return pbkdf2Sync(password, salt!, Number(iterations), 32, 'sha256').toString('hex') === key
  }

  it('keeps a password that it made where only it can read it, and prints it on request only', () => {
    const first = setup('run')
    const file = join(folder, 'private/administrator.txt')
    const [, password] = /^admin:(\S{20})\n$/.exec(readFileSync(file, 'utf8'))!
    expect(admits(password!)).to.equal(true)
    expect(statSync(file).mode & 0o777).to.equal(0o600)
    expect(statSync(join(folder, 'settings/10-cluster.ini')).mode & 0o777).to.equal(0o600)
    expect(readdirSync(join(folder, 'settings'))).to.deep.equal(['10-cluster.ini'])
    const made = settings()
    const second = setup('run')
    for (const { status, said } of [first, second]) {
      expect(status).to.equal(0)
      expect(said).to.include('docker compose run --rm setup show-password').and.not.include(password)
    }
    expect(settings()).to.equal(made).and.not.include(password)
    expect(setup('show-password').said).to.equal(`admin:${password}\n`)
    expect(setup('forget-password').status).to.equal(0)
    expect(existsSync(file)).to.equal(false)
    expect(setup('show-password')).to.deep.equal({
      status: 1, said: 'setup show-password: the password was given at the first start, or was forgotten\n',
    })
    expect(setup('run').said).not.to.include('show-password')
    expect(settings()).to.equal(made)
  })

  it('takes a password from the environment or a file, and stores only its hash', () => {
    const path = join(folder, 'secret')
    writeFileSync(path, 'from a file\n')
    for (const [env, password] of [
      [{ SECTIONAL_ADMIN_PASSWORD: 'from outside' }, 'from outside'],
      [{ SECTIONAL_ADMIN_PASSWORD: '', SECTIONAL_ADMIN_PASSWORD_FILE: path }, 'from a file'],
    ] as const) {
      const { said } = setup('run', env)
      expect(said).not.to.include(password)
      expect(admits(password)).to.equal(true)
      expect(readdirSync(join(folder, 'private'))).to.deep.equal([])
      rmSync(join(folder, 'settings/10-cluster.ini'))
    }
    writeFileSync(path, '\n')
    expect(setup('run', { SECTIONAL_ADMIN_PASSWORD_FILE: path }).said).to.match(/the first line of .* is empty/)
    expect(existsSync(join(folder, 'settings/10-cluster.ini'))).to.equal(false)
  })

  it('moves the password of an earlier version away from the nodes', () => {
    setup('run', { SECTIONAL_ADMIN_PASSWORD: 'earlier' })
    writeFileSync(join(folder, 'settings/administrator.txt'), 'admin:earlier\n')
    setup('run')
    expect(readdirSync(join(folder, 'settings'))).to.deep.equal(['10-cluster.ini'])
    expect(setup('show-password').said).to.equal('admin:earlier\n')
  })
})
