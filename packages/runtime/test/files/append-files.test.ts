import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { NodeAppendFiles } from '../../src/files/append-files-node.ts'

describe('files of lines', () => {
  let folder: string
  let files: NodeAppendFiles
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8')
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'append-files-'))
    files = new NodeAppendFiles(folder)
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('are created readable by their owner only, and grow', async () => {
    await files.append('a.log', '1\n')
    await files.append(join(folder, 'a.log'), '2\n3\n')
    expect(read('a.log')).to.equal('1\n2\n3\n')
    expect(statSync(join(folder, 'a.log')).mode & 0o777).to.equal(0o600)
  })

  it('begin anew after they were renamed', async () => {
    await files.append('a.log', '1\n')
    renameSync(join(folder, 'a.log'), join(folder, 'a.log.1'))
    await files.append('a.log', '2\n')
    expect([read('a.log.1'), read('a.log')]).to.deep.equal(['1\n', '2\n'])
  })

  it('get a new line after one that was cut off', async () => {
    appendFileSync(join(folder, 'a.log'), '1\n{"cut')
    await files.append('a.log', '2\n')
    expect(read('a.log')).to.equal('1\n{"cut\n2\n')
  })

  it('fail when they cannot be opened', async () => {
    const error = await files.append('missing/a.log', '1\n').then(() => null, (reason: unknown) => reason)
    expect(error).to.be.instanceOf(Error)
  })

  it('are not pipes, whose lines are lost without a reader', async () => {
    execFileSync('mkfifo', [join(folder, 'pipe')])
    const error = await files.append('pipe', '1\n').then(() => null, (reason: unknown) => reason)
    expect(error).to.match(/is a named pipe/)
  })
})
