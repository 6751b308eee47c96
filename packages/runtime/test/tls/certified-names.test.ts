import { X509Certificate } from 'node:crypto'
import { expect } from 'chai'
import { alternativeNames } from '../../src/tls/certified-names.ts'
import { testAuthority } from '../../src/tls/test-certificates.ts'
import type { CertificateContent } from '../../src/tls/test-certificates.ts'

function namesOf(content: CertificateContent): readonly string[] {
  return alternativeNames(new X509Certificate(testAuthority('names').issue(content).cert).subjectAltName ?? '')
}

describe('the names in a certificate', () => {
  it('are listed with their kinds', () => {
    expect(namesOf({ hosts: ['db1', 'db2.example.org'], addresses: ['10.0.0.1'], uris: ['sectional:a@db1'] })).to
      .deep.equal(['DNS:db1', 'DNS:db2.example.org', 'IP Address:10.0.0.1', 'URI:sectional:a@db1'])
    expect(alternativeNames('')).to.deep.equal([])
  })

  it('cannot contain further names', () => {
    const more = ', URI:sectional:b@h'
    for (const odd of [`a${more}`, `a"${more}, DNS:"`, `a\\"${more}`, '"', "it's"]) {
      expect(namesOf({ hosts: [odd, 'end'] })).to.deep.equal([`DNS:${odd}`, 'DNS:end'])
    }
  })
})
