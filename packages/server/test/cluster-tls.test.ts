import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { testAuthority } from '@sectional/runtime/test-certificates'
import { clusterTls } from '../src/command-line/cluster-tls.ts'
import { StartError } from '../src/command-line/flags.ts'
import { nodeDeclarations } from '../src/configuration/node-declarations.ts'
import { parseOptions } from '../src/configuration/settings.ts'
import { LiveConfiguration } from '../src/index.ts'

describe('certificates between nodes', () => {
  let folder: string
  const { identity } = testAuthority('one')
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'cluster-tls-'))
    for (const [part, pem] of Object.entries(identity)) writeFileSync(join(folder, `${part}.pem`), pem)
    writeFileSync(join(folder, 'other-key.pem'), testAuthority('two').identity.key)
    writeFileSync(join(folder, 'text.pem'), 'no certificate')
  })
  after(() => rmSync(folder, { recursive: true }))

  async function read(ini: string): Promise<ReturnType<typeof clusterTls>> {
    const files = [{ name: 'local.ini', text: `[cluster]\n${ini}` }]
    const configuration = await LiveConfiguration.load({ read: async () => files, write: async () => {} }, {})
    return clusterTls(parseOptions(nodeDeclarations, configuration.settings()), folder)
  }

  async function refusal(ini: string): Promise<string> {
    try {
      await read(ini)
      return 'none'
    } catch (error) {
      expect(error).to.be.instanceOf(StartError)
      return (error as Error).message
    }
  }

  it('are read from the folder of the configuration, and are not required by default', async () => {
    expect(await read('')).to.equal(undefined)
    const files = 'tls_key_file = key.pem\ntls_cert_file = ./cert.pem\ntls_ca_file = ca.pem\n'
    expect(await read(files)).to.deep.equal(identity)
  })

  it('are refused with the name of the option and the problem', async () => {
    expect(await refusal('tls_key_file = key.pem\n')).to.equal(
      '[cluster] tls_cert_file and tls_ca_file is empty: TLS between nodes needs '
        + 'tls_key_file, tls_cert_file, tls_ca_file; set all or none',
    )
    expect(await refusal('tls_key_file = key.pem\ntls_cert_file = absent.pem\ntls_ca_file = ca.pem\n')).to.match(
      /^\[cluster\] tls_cert_file = "absent.pem": .*no such file/,
    )
    expect(await refusal('tls_key_file = key.pem\ntls_cert_file = cert.pem\ntls_ca_file = text.pem\n')).to.match(
      /^\[cluster\] tls_ca_file = "text.pem": /,
    )
    expect(await refusal('tls_key_file = other-key.pem\ntls_cert_file = cert.pem\ntls_ca_file = ca.pem\n')).to.equal(
      '[cluster] tls_key_file = "other-key.pem" is not the key of the certificate in tls_cert_file = "cert.pem"',
    )
  })
})
