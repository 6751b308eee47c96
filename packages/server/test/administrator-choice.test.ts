import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { chooseAdministrator } from '../src/command-line/administrator-choice.ts'
import { UsageError } from '../src/command-line/flags.ts'

describe('the administrator of a new cluster', () => {
  let folder: string
  beforeEach(() => { folder = mkdtempSync(join(tmpdir(), 'sectional-administrator-')) })
  afterEach(() => { rmSync(folder, { recursive: true }) })

  const write = (text: string): string => {
    const file = join(folder, 'admin')
    writeFileSync(file, text)
    return file
  }

  it('is chosen by a flag, a file or the environment, which other users of the machine cannot read', () => {
    const file = write('bert:from: a file\nmore\n')
    const environment = { SECTIONAL_ADMIN: 'carl:x' }
    expect(chooseAdministrator({ admin: 'anna:pw' }, environment)).to.deep.equal({ name: 'anna', password: 'pw' })
    expect(chooseAdministrator({ file }, environment)).to.deep.equal({ name: 'bert', password: 'from: a file' })
    expect(chooseAdministrator({}, environment)).to.deep.equal({ name: 'carl', password: 'x' })
    expect(chooseAdministrator({}, { SECTIONAL_ADMIN: '' })).to.equal(null)
  })

  it('is refused in another form, with a message that does not show it', () => {
    const wrong = [
      { file: write('geheim') }, { admin: ':geheim' }, { admin: 'a\u0007:geheim' }, { admin: '#a:geheim' },
      { admin: '[a:geheim]' }, { admin: 'a:geheim ' }, { admin: 'a:geheim ;' }, { admin: 'a:geheim\nx' },
      { admin: 'a:b', file: 'f' }, { file: '/nowhere' },
    ]
    for (const flags of wrong) {
      expect(() => chooseAdministrator(flags, {})).to.throw(UsageError)
        .with.property('message').that.does.not.match(/geheim/)
    }
    expect(() => chooseAdministrator({}, { SECTIONAL_ADMIN: 'geheim' })).to.throw(/^SECTIONAL_ADMIN: must be NAME/)
  })
})
