/** Options of the headers in which a proxy tells how its client addressed it. */
import { converted, option } from '@sectional/core/options'
import { headerName } from './header-types.ts'

const lowerCase = (name: string): string => name.toLowerCase()
const trust = 'The header is used only when the connection comes from one of trusted_proxies.'

export const proxyDeclarations = {
  /** Converted to lower case, like the others. */
  forwardedHostHeader: converted(option('chttpd/x_forwarded_host', headerName, {
    default: 'X-Forwarded-Host',
    effect: 'live',
    help: `Name of the request header in which a proxy gives the host that its client addressed. ${trust}`,
  }), lowerCase),

  forwardedProtoHeader: converted(option('chttpd/x_forwarded_proto', headerName, {
    default: 'X-Forwarded-Proto',
    effect: 'live',
    help: 'Name of the request header in which a proxy says whether its client used http or https, for the addresses '
      + `in answers. ${trust}`,
  }), lowerCase),

  forwardedSslHeader: converted(option('chttpd/x_forwarded_ssl', headerName, {
    default: 'X-Forwarded-Ssl',
    effect: 'live',
    help: `Name of the request header whose value on says that the client of the proxy used https. ${trust}`,
  }), lowerCase),
}
