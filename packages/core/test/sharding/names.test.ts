import { expect } from 'chai'
import {
  ApiError, checkDatabaseName, checkDocumentId, checkIdBytes, checkPartition, isDatabaseName,
} from '../../src/index.ts'

describe('document ids', () => {
  const plain = { partitioned: false, maxLength: 20 }
  const refused = (
    id: unknown, error: string, reason: string, rules: { partitioned: boolean; maxLength?: number } = plain,
  ): void => {
    expect(() => checkDocumentId(id, rules), String(id)).to.throw(ApiError).that.includes({
      status: 400, error, reason,
    })
  }

  it('may have any characters', () => {
    for (const id of ['a', 'a/b', '100%', 'a:b:c', '😀', '"q"', '_design/x', '_local/x', '_design/_x', 'a\u0000b']) {
      expect(checkDocumentId(id, plain)).to.equal(id)
    }
  })

  it('must be text, not empty, and within the limit in bytes', () => {
    for (const id of [5, null, undefined, {}]) refused(id, 'illegal_docid', 'Document id must be a string')
    refused('', 'illegal_docid', 'Document id must not be empty')
    refused('a\ud800', 'illegal_docid', 'Document id must be valid UTF-8')
    refused('é'.repeat(11), 'illegal_docid', 'Document id is too long')
    expect(checkDocumentId('é'.repeat(10), plain)).to.have.length(10)
    expect(checkDocumentId('x'.repeat(10_000), { partitioned: false })).to.have.length(10_000)
  })

  it('have at most 64 KiB, whatever the limit is', () => {
    const longest = 'é'.repeat(32 * 1024)
    for (const check of [checkIdBytes, (id: string) => { checkDocumentId(id, { ...plain, maxLength: 1e6 }) }]) {
      expect(() => check(longest)).not.to.throw()
      expect(() => check(`${longest}x`)).to.throw(ApiError, 'Document id is too long')
    }
  })

  it('must not begin with an underscore, except for design and local documents', () => {
    for (const id of ['_secret', '_', '_design', '_designs/x', '_part:rest']) {
      refused(id, 'illegal_docid', 'Only reserved document ids may start with underscore.')
    }
    refused('_design/', 'illegal_docid', 'Illegal document id `_design/`')
    refused('_local/', 'illegal_docid', 'Illegal document id `_local/`')
  })

  it('name a partition in partitioned databases', () => {
    const rules = { partitioned: true }
    refused('nopartition', 'illegal_docid', 'Doc id must be of form partition:id', rules)
    refused(':rest', 'illegal_partition', 'Partition must not be empty', rules)
    refused('part:', 'illegal_docid', 'Document id must not be empty', rules)
    refused('_part:rest', 'illegal_docid', 'Only reserved document ids may start with underscore.', rules)
    for (const id of ['a:b', 'a:b:c', '_design/app', '_local/x']) expect(checkDocumentId(id, rules)).to.equal(id)
  })

  it('have partitions whose names follow rules of their own', () => {
    expect(() => checkPartition('')).to.throw(ApiError, 'Partition must not be empty')
    expect(() => checkPartition('_a')).to.throw(ApiError, 'Partition must not start with an underscore')
    expect(() => checkPartition('a:b')).to.throw(ApiError)
    expect(() => checkPartition('a\ud800')).to.throw(ApiError, 'Partition must be valid UTF-8')
    expect(() => checkPartition('red')).to.not.throw()
  })
})

describe('database names', () => {
  it('begin with a lower-case letter', () => {
    for (const name of [
      'a', 'a_$()+-/b', 'db9', 'a/_users', '_users', '_replicator', 'x'.repeat(238), 'a/'.repeat(200),
    ]) {
      expect(checkDatabaseName(name)).to.equal(name)
    }
    for (const name of [
      '', 'Capital', '1digit', '_underscore', '$dollar', 'with space', 'dot.inside', 'smørrebrød', 'star*',
      'name:colon', 'a\n', '_users/a',
    ]) {
      expect(isDatabaseName(name)).to.equal(false)
      expect(() => checkDatabaseName(name), name).to.throw(ApiError).that.includes({
        status: 400, error: 'illegal_database_name',
      })
    }
    expect(() => checkDatabaseName('Capital')).to.throw(
      "Name: 'Capital'. Only lowercase characters (a-z), digits (0-9), and any of the characters "
        + '_, $, (, ), +, -, and / are allowed. Must begin with a letter.',
    )
  })

  it('have parts that are short enough for a file name', () => {
    expect(() => checkDatabaseName('x'.repeat(239))).to.throw(ApiError).that.includes({
      error: 'database_name_too_long',
    })
    expect(() => checkDatabaseName(`ok/${'x'.repeat(239)}`)).to.throw(
      `At least one path segment of \`ok/${'x'.repeat(239)}\` is too long.`,
    )
  })
})
