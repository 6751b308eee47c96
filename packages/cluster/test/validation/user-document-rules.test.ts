import { expect } from 'chai'
import { userDocumentRefusal } from '../../src/validation/user-document-rules.ts'

const ann = { _id: 'org.couchdb.user:ann', type: 'user', name: 'ann', roles: [] as readonly string[] }

interface Written {
  readonly old?: object | null
  readonly by?: string | null
  readonly roles?: readonly string[]
  readonly admins?: object | null
}

/** Returns the reason for which a document of `_users` is refused; null when it is not. */
function refusal(document: object, { old = null, by = 'ann', roles = [], admins = {} }: Written = {}): string | null {
  const given = [document, old, { name: by, roles }, { admins }]
  const steps = userDocumentRefusal(Buffer.from(JSON.stringify(given)))
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

describe('the rules for documents of users', () => {
  it('let only the user and administrators delete a document', () => {
    const deletion = { _id: ann._id, _deleted: true }
    const old = { ...ann }
    expect(refusal(deletion, { old })).to.equal(null)
    for (const by of ['bob', null]) expect(refusal(deletion, { old, by })).to.match(/Only admins may delete/)
    expect(refusal(deletion, { old, by: 'bob', admins: null })).to.match(/Only admins may delete/)
    expect(refusal(deletion, { old: null, by: null })).to.match(/Only admins may delete/)
    expect(refusal(deletion, { old, by: 'bob', roles: ['_admin'] })).to.equal(null)
    expect(refusal(deletion, { old, by: 'bob', admins: { names: ['bob'] } })).to.equal(null)
    expect(refusal(deletion, { old, by: 'bob', roles: ['clerk', 'boss'], admins: { roles: ['boss'] } })).to.equal(null)
    expect(refusal(deletion, { old, by: 'bob', roles: ['clerk'], admins: { names: ['ann'], roles: ['boss'] } }))
      .to.match(/Only admins may delete/)
  })

  it('let only the user and administrators replace a document, and only administrators give roles', () => {
    const old = { ...ann, roles: ['x', 'y'] }
    expect(refusal({ ...old, roles: ['y', 'x'] }, { old })).to.equal(null)
    expect(refusal(old, { old, by: 'bob' })).to.match(/only update your own/)
    expect(refusal({ ...old, roles: ['x', 'y', 'z'] }, { old })).to.match(/Only _admin may edit roles/)
    expect(refusal({ ...ann, roles: ['x'] })).to.match(/Only _admin may set roles/)
    expect(refusal({ ...ann, roles: ['x'] }, { roles: ['_admin'] })).to.equal(null)
    expect(refusal({ ...ann, roles: ['_admin'] }, { roles: ['_admin'] })).to.match(/No system roles/)
    expect(refusal(ann, { by: null })).to.equal(null)
  })

  it('keep the name of a user, and refuse a hash without salt', () => {
    expect(refusal(ann, { old: { ...ann, name: 'other' }, roles: ['_admin'] })).to.match(/can not be changed/)
    expect(refusal({ ...ann, name: 'bob' })).to.match(/Doc ID must be of the form/)
    expect(refusal({ ...ann, password_sha: 'x' })).to.match(/must have a salt/)
    expect(refusal({ ...ann, password_sha: 'x', salt: 'y' })).to.equal(null)
  })
})
