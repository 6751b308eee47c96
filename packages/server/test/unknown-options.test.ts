import { MemoryLog } from '@sectional/runtime'
import { expect } from 'chai'
import { LiveConfiguration } from '../src/configuration/live-configuration.ts'
import { warnOfUnknownOptions } from '../src/configuration/unknown-options.ts'

describe('unknown options', () => {
  it('are warned of once each, at the start, after a reload and after a change, without their values', async () => {
    let text = '[crs]\norigins = http://hunter2.example\n'
    const configuration = await LiveConfiguration.load(
      { read: async () => [{ name: 'local.ini', text }, { name: 'changes.ini', text: '' }], write: async () => {} }, {},
    )
    const log = new MemoryLog()
    const warned = (): unknown[] =>
      log.lines.splice(0).map(({ level, fields }) => [level, fields['section'], fields['key'], fields['nearest']])
    const end = warnOfUnknownOptions(configuration, log)
    expect(JSON.stringify(log.lines)).not.to.include('hunter2')
    expect(warned()).to.deep.equal([['warn', 'crs', 'origins', 'cors/origins']])
    text += 'credentials = true\n[chttpd]\nenable_cors = true\n'
    await configuration.reload()
    expect(warned()).to.deep.equal([['warn', 'crs', 'credentials', 'cors/credentials']])
    await configuration.set('chttpd', 'enable_corss', 'true', { persist: false })
    await configuration.set('uuids', 'max_count', '5', { persist: false })
    expect(warned()).to.deep.equal([['warn', 'chttpd', 'enable_corss', 'chttpd/enable_cors']])
    await configuration.reload()
    await configuration.set('chttpd', 'enable_corss', 'true', { persist: false })
    expect(warned()).to.have.length(1)
    end()
    await configuration.set('x', 'y', 'z', { persist: false })
    expect(warned()).to.deep.equal([])
  })
})
