import type { ConfigurationFiles } from '../src/configuration/live-configuration.ts'
import type { IniFile } from '../src/configuration/settings.ts'

export function file(text: string, name = 'local.ini'): IniFile {
  return { name, text }
}

/** Configuration files in memory. */
export class MemoryFiles implements ConfigurationFiles {
  contents: IniFile[]
  constructor(...contents: IniFile[]) { this.contents = contents }
  async read() { return this.contents }
  async write(changed: IniFile) {
    this.contents = this.contents.map(content =>
      content.name === changed.name ? { ...content, text: changed.text } : content)
  }
}

/** Returns the error with which a promise rejects. */
export async function refusal(promise: Promise<unknown>): Promise<Error> {
  return promise.then(() => { throw new Error('it was not refused') }, (error: Error) => error)
}
