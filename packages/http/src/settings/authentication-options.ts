/** Options of passwords, sessions, and required logins. */
import { usersDatabase } from '@sectional/cluster'
import { choice, converted, flag, integer, list, option, text, type OptionType } from '@sectional/core/options'
import { domainOrEmpty, optionalHeaderValue } from './header-types.ts'
import { passwordRulesDefect } from './password-rule-list.ts'

/**
 * With this many iterations a password takes a thread some seconds. A much larger number, for instance by a mistake,
 * would occupy the threads that check passwords, so that nobody could log in to correct it.
 */
export const iterationsMax = 10_000_000
const iterations = integer({ min: 1, max: iterationsMax })
/** The default of CouchDB, which is in files that come from there. */
const listedIterationsMax = 1_000_000_000

/** Whoever has a session cookie can try secrets as fast as a machine computes an HMAC. */
const sessionSecretLengthMin = 16

const digestNames = ['sha', 'sha224', 'sha256', 'sha384', 'sha512'] as const
export type DigestName = typeof digestNames[number]

/** A wrong name would change silently how sessions are signed. */
const digests: OptionType<readonly DigestName[]> = {
  kind: `comma separated list of ${digestNames.join(', ')}`,
  parse: given => {
    const names = list.parse(given).map(item => {
      const name = digestNames.find(known => known === item)
      if (name === undefined) throw new Error(`${item} is no digest; known: ${digestNames.join(', ')}`)
      return name
    })
    if (names.length === 0) throw new Error(`at least one of ${digestNames.join(', ')} is needed`)
    return names
  },
  format: names => list.format(names),
}

/** Only `_users` is accepted: with another name, `/_session` would show a database that accounts are not read from. */
const usersDatabaseName: OptionType<string> = {
  kind: `the name ${usersDatabase}`,
  parse: given => {
    if (given !== usersDatabase) throw new Error(`only ${usersDatabase} is allowed: no other database has accounts`)
    return given
  },
  format: name => name,
}

export const authenticationDeclarations = {
  requireValidUser: option('chttpd/require_valid_user', flag, {
    default: false,
    effect: 'live',
    help: 'Refuse every anonymous request.',
  }),

  requireValidUserExceptForUp: option('chttpd/require_valid_user_except_for_up', flag, {
    default: false,
    effect: 'live',
    help: 'Refuse every anonymous request except those to /_up.',
  }),

  wwwAuthenticate: option('chttpd/WWW-Authenticate', optionalHeaderValue, {
    default: undefined,
    effect: 'live',
    help: 'Value of the header WWW-Authenticate in 401 answers. Unset: it is not sent, so browsers ask for no '
      + 'password.',
  }),

  passwordIterations: option('chttpd_auth/iterations', iterations, {
    default: 600_000,
    effect: 'live',
    help: 'PBKDF2 iterations for passwords that are hashed from now on; those of users get at least min_iterations and '
      + 'at most max_iterations.',
  }),

  passwordDigest: option('chttpd_auth/pbkdf2_prf', choice(...digestNames), {
    default: 'sha256',
    effect: 'live',
    help: 'Digest of PBKDF2 for passwords of user documents that are hashed from now on.',
  }),

  passwordIterationsMin: option('chttpd_auth/min_iterations', iterations, {
    default: 1,
    effect: 'live',
    help: 'Password hashes of users with fewer iterations are refused.',
  }),

  /** At most `iterationsMax`. */
  passwordIterationsMax: converted(option('chttpd_auth/max_iterations', integer({ min: 1, max: listedIterationsMax }), {
    default: iterationsMax,
    effect: 'live',
    help: 'Password hashes of users with more iterations are refused, because each login has to compute them. A value '
      + `above ${iterationsMax} means ${iterationsMax}.`,
  }), value => Math.min(value, iterationsMax)),

  passwordScheme: option('chttpd_auth/password_scheme', choice('pbkdf2', 'simple'), {
    default: 'pbkdf2',
    effect: 'live',
    help: 'How passwords of user documents are hashed from now on. simple is a salted SHA-1, for programs that know '
      + 'nothing else: whoever reads such a hash finds the password fast.',
  }),

  upgradesHashes: option('chttpd_auth/upgrade_hash_on_auth', flag, {
    default: true,
    effect: 'live',
    help: 'After a login, replace the hash in the document of the user when it has another scheme or digest than new '
      + 'ones, or fewer iterations. Sessions continue.',
  }),

  /** A list in the form of CouchDB, which `PasswordRules` reads. */
  passwordRules: option('chttpd_auth/password_regexp', text, {
    default: '[]',
    effect: 'live',
    help: 'Regular expressions that new passwords of users must match, each with the reason that is given to those '
      + 'whose password does not: [{".{10,}", "Ten characters at least."}, "[A-Z]"]. A text of words alone, such as '
      + 'none, refuses every new password.',
    defect: passwordRulesDefect,
  }),

  usersArePublic: option('chttpd_auth/users_db_public', flag, {
    default: false,
    effect: 'live',
    help: 'Show the public_fields of all users to the members of the users database.',
  }),

  publicUserFields: option('chttpd_auth/public_fields', list, {
    default: [],
    effect: 'live',
    help: 'Members of user documents that others may read while users_db_public is true.',
  }),

  /** Empty: the session secret that the cluster has generated is used. */
  sessionSecret: option('chttpd_auth/secret', text, {
    default: '',
    effect: 'live',
    secret: true,
    clusterWide: true,
    help: `Secret with which session cookies are signed, at least ${sessionSecretLengthMin} characters, the same on `
      + 'every node. Empty: the cluster makes one at the first login. After a change the previous secret stays valid '
      + 'for the time of the option timeout.',
    defect: secret => secret === '' || secret.length >= sessionSecretLengthMin ? null
      : `it has ${secret.length} character${secret.length === 1 ? '' : 's'}, and whoever guesses it can be any user. `
        + `Use at least ${sessionSecretLengthMin}, for instance the output of: openssl rand -hex 32; or leave it `
        + 'empty, and the cluster makes one',
  }),

  sessionSeconds: option('chttpd_auth/timeout', integer({ min: 1, max: 1_000_000_000, unit: 'seconds' }), {
    default: 600,
    effect: 'live',
    help: 'An unused session cookie is invalid after this time.',
  }),

  persistentCookies: option('chttpd_auth/allow_persistent_cookies', flag, {
    default: true,
    effect: 'live',
    help: 'Let browsers keep the session cookie when they are closed.',
  }),

  /** Empty: the cookie is sent to this host only. */
  cookieDomain: option('chttpd_auth/cookie_domain', domainOrEmpty, {
    default: '',
    effect: 'live',
    help: 'Domain of the session cookie. Empty: browsers send the cookie only to the host that set it.',
  }),

  /** Converted to lower case. */
  sameSite: converted(option('chttpd_auth/same_site', text, {
    default: 'auto',
    effect: 'live',
    help: 'SameSite attribute of the session cookie: none, lax or strict. auto: lax, and no attribute while scripts of '
      + 'other origins may send credentials (cors/credentials). Any other value leaves the attribute out, and is '
      + 'logged as a warning unless it is empty.',
  }), value => value.toLowerCase()),

  hashAlgorithms: option('chttpd_auth/hash_algorithms', digests, {
    default: ['sha256', 'sha'],
    effect: 'live',
    clusterWide: true,
    help: 'Digests that are accepted in session cookies; new cookies are signed with the first one.',
  }),

  authenticationDatabase: option('chttpd_auth/authentication_db', usersDatabaseName, {
    default: usersDatabase,
    effect: 'live',
    help: 'Name of the users database, for files that come from CouchDB. No other database is possible.',
  }),
}
