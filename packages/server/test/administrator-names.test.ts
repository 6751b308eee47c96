import { expect } from 'chai'
import { LiveConfiguration, type ConfigurationFiles } from '../src/configuration/live-configuration.ts'

interface OneFile extends ConfigurationFiles { text: string }

function files(text: string): OneFile {
  return {
    text,
    async read() { return [{ name: 'local.ini', text: this.text }] },
    async write(changed) { this.text = changed.text },
  }
}

async function refusal(promise: Promise<unknown>): Promise<Error> {
  return promise.then(() => { throw new Error('it was not refused') }, (error: Error) => error)
}

describe('administrators of the configuration', () => {
  it('have names with which they can log in', async () => {
    const configuration = await LiveConfiguration.load(files('[admins]\nanna = -1\n'), {})
    for (const name of ['a:b', ':', 'a\u0007b', 'a\ud800', '']) {
      const refused = await refusal(configuration.set('admins', name, 'geheim', { persist: true }))
      expect(refused, name).to.include({ status: 400 })
      expect(refused.message).to.include('a name must not be empty, nor have a colon').and.not.to.include('geheim')
    }
    for (const name of ['anna b', 'b\u00fcrger', 'a@b.example', '_a', 'a/b', 'a=b']) {
      await configuration.set('admins', name, '-2', { persist: true })
    }
    const text = '[admins]\nanna = -1\na:b = geheim\n'
    const started = await LiveConfiguration.load(files(text), {})
    expect((await refusal(started.check())).message)
      .to.match(/^local\.ini line 3: \[admins\] a:b = \*{4}: a name must not be empty, nor have a colon/)
    const running = files('[admins]\nanna = -1\n')
    const live = await LiveConfiguration.load(running, {})
    running.text = text
    expect((await refusal(live.reload())).message).to.include('line 3: [admins] a:b = ****')
  })
})
