/** Options of the lock against guessing passwords, and of the addresses of clients behind a proxy. */
import { choice, integer, list, option, type OptionType } from '@sectional/core/options'
import { optionalHeaderName } from './header-types.ts'

const byte = '(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)'
const addressForm = new RegExp(`^(?:${byte}(?:\\.${byte}){3}(?:/(?:3[0-2]|[12]?\\d))?|[0-9a-fA-F.]*:[0-9a-fA-F:.]*)$`)

/** Addresses of IPv4 and IPv6, and ranges of IPv4 addresses. */
const addresses: OptionType<readonly string[]> = {
  kind: 'comma separated list of addresses',
  parse: given => list.parse(given).map(item => {
    if (!addressForm.test(item)) throw new Error(`${item} is neither an address nor a range of IPv4 addresses`)
    return item
  }),
  format: items => list.format(items),
}

export const lockoutDeclarations = {
  lockoutMode: option('chttpd_auth_lockout/mode', choice('off', 'warn', 'enforce'), {
    default: 'enforce',
    effect: 'live',
    help: 'What happens when a client has sent too many wrong passwords for an account. enforce: logins of the client '
      + 'to this account get 403 for a time. warn: a line in the log. off: wrong passwords are not counted.',
  }),

  lockoutThreshold: option('chttpd_auth_lockout/threshold', integer({ min: 1, max: 1_000_000 }), {
    default: 5,
    effect: 'live',
    help: 'Number of wrong passwords from one address after which an account is locked for this address. The '
      + 'addresses of a /64 network of IPv6 count as one.',
  }),

  lockoutMs: option('chttpd_auth_lockout/max_lifetime', integer({ min: 1, max: 2 ** 40, unit: 'milliseconds' }), {
    default: 300_000,
    effect: 'live',
    help: 'Time after the first wrong password at which the count begins anew.',
  }),

  lockoutEntriesMax: option('chttpd_auth_lockout/max_objects', integer({ min: 1, max: 10_000_000 }), {
    default: 10_000,
    effect: 'restart',
    help: 'Number of pairs of address and account whose wrong passwords are counted. When there are more, one of the '
      + 'address with the most is forgotten.',
  }),

  peerHeader: option('chttpd/peer_header', optionalHeaderName, {
    default: undefined,
    effect: 'live',
    help: 'Name of the request header in which a proxy gives the address of the client, for instance '
      + 'X-Forwarded-For. It is used only when the connection comes from one of trusted_proxies. Unset: the address '
      + 'of the connection is that of the client.',
  }),

  trustedProxies: option('chttpd/trusted_proxies', addresses, {
    default: ['127.0.0.1', '::1'],
    effect: 'live',
    help: 'Addresses of the proxies whose peer_header is trusted. Ranges of IPv4 addresses are written like '
      + '10.0.0.0/8.',
  }),
}
