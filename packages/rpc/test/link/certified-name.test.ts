import assert from 'node:assert/strict'
import { certificateProblem } from '../../src/link/certified-name.ts'

const node = 'node2@db2.example.org'
const uri = (name: string): string => `URI:sectional:${name}`

describe('the name of a node in a certificate', () => {
  it('is a URI, or the host in the name of the node', () => {
    for (const names of [
      [uri(node)], ['DNS:other', uri('node1@db1.example.org'), uri(node)], ['DNS:db2.example.org'],
      ['DNS:db1', 'DNS:DB2.Example.org', 'URI:urn:other'],
    ]) {
      assert.equal(certificateProblem(node, names), null, names.join())
    }
    assert.equal(certificateProblem('node2@DB2.example.org', ['DNS:db2.example.org']), null)
    assert.equal(certificateProblem('node1@10.0.0.1', ['IP Address:10.0.0.1']), null)
    assert.equal(certificateProblem('node1@::1', ['IP Address:0:0:0:0:0:0:0:1']), null)
  })

  it('is no other name, and no wildcard', () => {
    for (const names of [
      [], [uri('node1@db2.example.org')], [uri(`${node}.evil`)], ['DNS:db1.example.org'], ['DNS:*.example.org'],
      ['URI:db2.example.org'], ['URI:sectional:'], ['DNS:node2@db2.example.org'], ['IP Address:10.0.0.1'],
    ]) {
      assert.match(certificateProblem(node, names) ?? '', /^the certificate of node2@db2\.example\.org must name /)
    }
    assert.notEqual(certificateProblem('node1@10.0.0.1', ['DNS:10.0.0.1']), null)
    assert.notEqual(certificateProblem('node1@::1', ['IP Address:0:0:0:0:0:0:0:2']), null)
  })

  it('is only the URI when the certificate has any, because nodes may share a host', () => {
    assert.equal(
      certificateProblem(node, ['DNS:db2.example.org', uri('node1@db2.example.org')]),
      'the certificate of node2@db2.example.org must name URI:sectional:node2@db2.example.org, '
        + 'it names DNS:db2.example.org, URI:sectional:node1@db2.example.org',
    )
  })

  it('is shown with the names of the certificate, of which a few are listed', () => {
    assert.equal(
      certificateProblem(node, []), 'the certificate of node2@db2.example.org must name DNS:db2.example.org, '
        + 'it names nothing',
    )
    assert.match(
      certificateProblem(node, Array.from({ length: 1000 }, (_, index) => `DNS:${index}`))!,
      /it names DNS:0, DNS:1, DNS:2, DNS:3 and 996 more$/,
    )
  })
})
