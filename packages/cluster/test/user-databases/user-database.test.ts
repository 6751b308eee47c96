import { expect } from 'chai'
import { adminOnlySecurity } from '../../src/control/cluster-state.ts'
import { userDatabaseName, userOf, withoutUser, withUser } from '../../src/user-databases/user-database.ts'
import { userDatabasesDeclarations } from '../../src/user-databases/user-databases-options.ts'

describe('the database of a user', () => {
  it('has the name of the user in UTF-8 and hexadecimal', () => {
    expect(userDatabaseName('userdb-', 'bob')).to.equal('userdb-626f62')
    expect(userDatabaseName('u/', 'Zoë 😀')).to.equal('u/5a6fc3ab20f09f9880')
  })

  it('belongs to documents of users only', () => {
    expect(userOf('org.couchdb.user:a:b')).to.equal('a:b')
    for (const id of ['org.couchdb.user:', 'org.couchdb.user', '_design/_auth', 'bob']) {
      expect(userOf(id)).to.equal(null)
    }
  })

  it('names the user in both lists of its security object, once, and keeps everything else', () => {
    const secured = withUser(adminOnlySecurity, 'bob')
    expect(secured).to.deep.equal({
      members: { roles: ['_admin'], names: ['bob'] }, admins: { roles: ['_admin'], names: ['bob'] },
    })
    expect(withUser(secured, 'bob')).to.equal(secured)
    const edited = { admins: { names: ['ann', 'bob'] }, members: 7, cloudant: { ann: ['_reader'] } }
    expect(withUser(edited, 'bob')).to.deep.equal({ ...edited, members: { names: ['bob'] } })
    expect(withoutUser(edited, 'bob')).to.deep.equal({ ...edited, admins: { names: ['ann'] } })
    expect(withoutUser(edited, 'carl')).to.equal(edited)
  })

  it('has a prefix that makes a legal name', () => {
    const { userDatabasePrefix: option } = userDatabasesDeclarations
    for (const text of ['userdb-', 'u', 'team/users_']) expect(option.parse(text)).to.equal(text)
    for (const text of ['', '_u', '0', 'User-', 'a b']) {
      expect(() => option.parse(text), text).to.throw('only a letter from a to z')
    }
    expect(option.parse('x'.repeat(237))).to.have.length(237)
    expect(() => option.parse('x'.repeat(238))).to.throw('the prefix has 238 characters, at most 237 are allowed')
  })
})
