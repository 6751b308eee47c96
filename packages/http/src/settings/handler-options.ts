/** Options of the authentication handlers: their order, the headers of proxy authentication, and the login page. */
import { converted, flag, option, type OptionType } from '@sectional/core/options'
import { headerName } from './header-types.ts'

/** The handlers by the names that `/_session` shows. `default` is HTTP Basic. */
const handlerNames = ['cookie', 'proxy', 'jwt', 'default'] as const
export type HandlerName = typeof handlerNames[number]

const handlerForm = /^(?:\{\s*(?:chttpd_auth|couch_httpd_auth)\s*,\s*(\w+)_authentication_handler\s*\}|(\w+))$/

/** Handlers in CouchDB's form, `{chttpd_auth, cookie_authentication_handler}, ...`, or by their names. */
const handlers: OptionType<readonly HandlerName[]> = {
  kind: `comma separated list of ${handlerNames.join(', ')}`,
  parse: given => {
    const items = given.split(/,(?![^{]*\})/).map(item => item.trim()).filter(item => item !== '')
    const names = items.map(item => {
      const [, inTuple, plain] = handlerForm.exec(item) ?? []
      const name = handlerNames.find(known => known === (inTuple ?? plain))
      if (name === undefined) throw new Error(`${item} is no authentication handler; known: ${handlerNames.join(', ')}`)
      return name
    })
    if (names.length === 0) throw new Error('at least one authentication handler is needed')
    if (new Set(names).size < names.length) throw new Error('each authentication handler may be listed once')
    return names
  },
  format: names => names.map(name => `{chttpd_auth, ${name}_authentication_handler}`).join(', '),
}

/** A path on this host. */
const localPath: OptionType<string> = {
  kind: 'path',
  parse: given => {
    if (given !== '' && !/^\/(?![/\\])[\x21-\x7e]*$/.test(given)) {
      throw new Error('only a path that begins with one / is allowed')
    }
    return given
  },
  format: value => value,
}

const lowerCase = (name: string): string => name.toLowerCase()

export const handlerDeclarations = {
  authenticationHandlers: option('chttpd/authentication_handlers', handlers, {
    default: ['cookie', 'default'],
    effect: 'live',
    clusterWide: true,
    help: 'The ways in which clients prove who they are, in the order in which they are tried: cookie (a session), '
      + 'proxy (headers of a proxy), jwt (signed tokens) and default (HTTP Basic).',
  }),

  /** Empty: browsers get the error like other clients. */
  loginPath: option('chttpd_auth/authentication_redirect', localPath, {
    default: '',
    effect: 'live',
    help: 'Path of a login page. Browsers are sent there instead of an error with status 401, with the path that they '
      + 'requested (return) and the reason. Empty: they get the error.',
  }),

  proxyUsesSecret: option('chttpd_auth/proxy_use_secret', flag, {
    default: false,
    effect: 'live',
    clusterWide: true,
    help: 'Proxy authentication needs a token that proves that the proxy knows chttpd_auth/secret. Without it, every '
      + 'client that reaches the node can be any user while the handler proxy is listed.',
  }),

  /** Converted to lower case. */
  proxyUserHeader: converted(option('chttpd_auth/x_auth_username', headerName, {
    default: 'X-Auth-Service-UserName',
    effect: 'live',
    clusterWide: true,
    help: 'Header in which a proxy names the user.',
  }), lowerCase),

  /** Converted to lower case. */
  proxyRolesHeader: converted(option('chttpd_auth/x_auth_roles', headerName, {
    default: 'X-Auth-Service-Roles',
    effect: 'live',
    clusterWide: true,
    help: 'Header in which a proxy lists the roles of the user, separated by commas.',
  }), lowerCase),

  /** Converted to lower case. */
  proxyTokenHeader: converted(option('chttpd_auth/x_auth_token', headerName, {
    default: 'X-Auth-Service-Token',
    effect: 'live',
    clusterWide: true,
    help: 'Header with the token of the proxy: the HMAC of the name of the user, in hexadecimal digits.',
  }), lowerCase),
}
