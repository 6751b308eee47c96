/**
 * The rules of documents in the users database. CouchDB keeps them in `_design/_auth` of that database; here they
 * are part of the node, so that nobody can delete them, and they need no sandbox.
 */
import { arrayElements, asBuffer, isJsonObject, NamedMembers } from '@sectional/core'

/** Name of the users database. */
export const usersDatabase = '_users'

/**
 * Returns whether a database has user documents: `_users`, and those that a program keeps for itself. Only users in
 * `_users` can log in, and only its documents have rules for their content.
 */
export function hasUserDocuments(name: string): boolean {
  return name === usersDatabase || name.endsWith(`/${usersDatabase}`)
}

/** The id of a user's document is this prefix and the name of the user. */
export const userIdPrefix = 'org.couchdb.user:'

/** Most rounds of a hash that users write themselves, since a login with it occupies a thread for so long. */
const ownIterationsMax = 1_000_000
/** Most characters of each text of a hash. Those of new hashes have 128 at most. */
export const hashTextLengthMax = 1024
/** Most bytes of a user's name. */
export const userNameBytesMax = 4096
/** Most bytes of the members that describe an account, as JSON, since they are parsed in one piece. */
export const accountBytesMax = 1024 * 1024
const passwordSchemes: readonly unknown[] = ['simple', 'pbkdf2', 'simple+pbkdf2']

const hashTexts = ['password_scheme', 'pbkdf2_prf', 'salt', 'derived_key', 'password_sha'] as const
const checkedMembers = new NamedMembers(['_id', '_deleted', 'type', 'name', 'roles', 'iterations', ...hashTexts])
const replacedMembers = new NamedMembers(['name', 'roles'])

const nullJson = Buffer.from('null')

type Members = Readonly<Record<string, unknown>>

/**
 * Checks a write of a user's document. Its other members are skipped.
 *
 * @param argumentList canonical JSON of `[newDoc, oldDoc, userCtx, secObj]`, the arguments of validation functions
 * @returns why the write is forbidden; null when it is allowed
 */
export function* userDocumentRefusal(argumentList: Uint8Array): Generator<void, string | null> {
  const [newDocument, oldDocument, ...context] = yield* arrayElements(argumentList)
  const checked = yield* checkedMembers.only(newDocument!)
  if (checked.length > accountBytesMax) return `name, roles and hash have more than ${accountBytesMax} bytes of JSON.`
  const document = parsed(checked) as Members
  const old = isNull(oldDocument!) ? null : parsed(yield* replacedMembers.only(oldDocument!)) as Members
  const [user, security] = context.map(parsed) as [WritingUser, Members]
  const admin = isAdministrator(user, security)
  if (document['_deleted'] === true) {
    const own = old !== null && user.name !== null && user.name === old['name']
    return admin || own ? null : 'Only admins may delete other user docs.'
  }
  return memberRefusal(document, old) ?? passwordRefusal(document)
    ?? (admin ? null : roleRefusal(document, old, user) ?? iterationsRefusal(document)) ?? nameRefusal(document)
}

function isNull(json: Uint8Array): boolean {
  return asBuffer(json).equals(nullJson)
}

function parsed(json: Uint8Array): unknown {
  return JSON.parse(asBuffer(json).toString('utf8'))
}

interface WritingUser { readonly name: string | null; readonly roles: readonly string[] }

function memberRefusal({ _id: id, type, name, roles }: Members, old: Members | null): string | null {
  if (type !== 'user') return 'doc.type must be user'
  if (!name) return 'doc.name is required'
  if (!roles) return 'doc.roles must exist'
  if (!Array.isArray(roles)) return 'doc.roles must be an array'
  if (!roles.every(role => typeof role === 'string')) return 'doc.roles can only contain strings'
  if (typeof name !== 'string' || id !== userIdPrefix + name) return 'Doc ID must be of the form org.couchdb.user:name'
  if (old !== null && old['name'] !== name) return 'Usernames can not be changed.'
  return null
}

function passwordRefusal(document: Members): string | null {
  const { password_sha: sha, salt, password_scheme: scheme, iterations, derived_key: derivedKey } = document
  const long = hashTexts.find(name => lengthOf(document[name]) > hashTextLengthMax)
  if (long !== undefined) return `${long} may have at most ${hashTextLengthMax} characters.`
  if (sha && !salt) return 'Users with password_sha must have a salt.'
  if (scheme && !passwordSchemes.includes(scheme)) {
    return `Password scheme \`${typeof scheme === 'string' ? scheme : JSON.stringify(scheme)}\` not supported.`
  }
  if (scheme === 'pbkdf2' || scheme === 'simple+pbkdf2') {
    if (typeof iterations !== 'number') return 'iterations must be a number.'
    if (typeof derivedKey !== 'string') return 'derived_key must be a string.'
  }
  return null
}

/** Returns the characters of a text, and 0 for other values. */
function lengthOf(value: unknown): number {
  return typeof value === 'string' ? value.length : 0
}

/** Returns why somebody who is no administrator may not write these roles, or this document. */
function roleRefusal(document: Members, old: Members | null, user: WritingUser): string | null {
  const roles = document['roles'] as readonly string[]
  if (old === null) return roles.length > 0 ? 'Only _admin may set roles' : null
  if (user.name !== document['name']) return 'You may only update your own user document.'
  const before = Array.isArray(old['roles']) ? old['roles'] as unknown[] : []
  return sorted(before) === sorted(roles) ? null : 'Only _admin may edit roles'
}

function iterationsRefusal({ iterations }: Members): string | null {
  return typeof iterations === 'number' && iterations > ownIterationsMax
    ? `iterations is ${iterations}; only an administrator may write more than ${ownIterationsMax}.`
    : null
}

function nameRefusal({ name, roles }: Members): string | null {
  if ((roles as readonly string[]).some(role => role.startsWith('_') && role !== '_metrics')) {
    return 'No system roles (starting with underscore) in users db.'
  }
  if ((name as string).startsWith('_')) return 'Username may not start with underscore.'
  if (Buffer.byteLength(name as string) > userNameBytesMax) {
    return `Username may have at most ${userNameBytesMax} bytes.`
  }
  return (name as string).includes(':') ? 'Character `:` is not allowed in usernames.' : null
}

/** Returns whether the user is an administrator of the server or of the database. */
function isAdministrator({ name, roles }: WritingUser, { admins }: Members): boolean {
  if (roles.includes('_admin')) return true
  if (!isJsonObject(admins)) return false
  const { names, roles: adminRoles } = admins
  return (name !== null && Array.isArray(names) && names.includes(name))
    || (Array.isArray(adminRoles) && roles.some(role => adminRoles.includes(role)))
}

function sorted(values: readonly unknown[]): string {
  return JSON.stringify([...values].sort())
}
