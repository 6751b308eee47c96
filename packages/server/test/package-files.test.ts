import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { wantedNode } from '../src/command-line/package-files.ts'

const checkout = new URL('../../../', import.meta.url)

describe('the version of Node.js', () => {
  it('is one that has the known security fixes, or is named in a warning', () => {
    const wanted = wantedNode('24.0.0')
    expect(wanted).to.match(/^\^24\.\d+\.\d+ \|\| >=\d+\.\d+\.\d+$/)
    const [first, other] = wanted!.split(' || ').map(range => range.replace(/^\D+/, ''))
    const major = Number(other!.split('.')[0])
    for (const version of [first!, '24.999.0', other!, `${major}.999.1`, `${major + 1}.0.0`]) {
      expect(wantedNode(version), version).to.equal(null)
    }
    for (const version of ['22.99.0', '24.1.99', '25.99.0', `${major}.0.0`]) {
      expect(wantedNode(version), version).to.equal(wanted)
    }
  })

  it('is the same in all packages', () => {
    const { packages } = JSON.parse(readFileSync(new URL('package-lock.json', checkout), 'utf8')) as {
      readonly packages: Record<string, { readonly engines?: { readonly node: string } }>
    }
    for (const folder of ['', ...Object.keys(packages).filter(path => path.startsWith('packages/'))]) {
      const text = readFileSync(new URL(`${folder === '' ? '' : `${folder}/`}package.json`, checkout), 'utf8')
      expect((JSON.parse(text) as { engines: unknown }).engines, folder).to.deep.equal({ node: wantedNode('24.0.0') })
      expect(packages[folder]!.engines, folder).to.deep.equal({ node: wantedNode('24.0.0') })
    }
  })
})
