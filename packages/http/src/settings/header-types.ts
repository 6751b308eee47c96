/** Types of options whose text becomes the name or the value of a header of HTTP. */
import type { OptionType } from '@sectional/core/options'

/** Clients refuse responses with much longer headers. */
const valueLengthMax = 4096

export const headerName: OptionType<string> = {
  kind: 'name of a header',
  parse: given => {
    // Headers are members of an object, so the names that all objects have are not those of a header.
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/.test(given) || given.toLowerCase() in {}) {
      throw new Error('only the name of a header is allowed')
    }
    // The only header of which Node makes an array.
    if (given.toLowerCase() === 'set-cookie') throw new Error('only the name of a header of requests is allowed')
    return given
  },
  format: name => name,
}

/** The name of a header, or undefined for an empty text and while the option is unset. */
export const optionalHeaderName: OptionType<string | undefined> = {
  kind: headerName.kind,
  parse: given => given === '' ? undefined : headerName.parse(given),
  format: name => name ?? null,
}

/** A response with another value could not be sent. */
export const headerValue: OptionType<string> = {
  kind: 'value of a header',
  parse: given => {
    if (!/^[\x20-\x7e]*$/.test(given) || given.length > valueLengthMax) {
      throw new Error(`only printable ASCII characters are allowed, ${valueLengthMax} at most`)
    }
    return given
  },
  format: value => value,
}

/** The value is undefined while the option is unset. */
export const optionalHeaderValue: OptionType<string | undefined> = { ...headerValue, format: value => value ?? null }

/** A name of the domain name system (RFC 1123), to which `Domain` of a cookie may add a dot. */
export const domainOrEmpty: OptionType<string> = {
  kind: 'name of a domain',
  parse: given => {
    if (!/^(?:\.?[0-9A-Za-z](?:[0-9A-Za-z.-]{0,251}[0-9A-Za-z])?)?$/.test(given)) {
      throw new Error('only the name of a domain is allowed')
    }
    return given
  },
  format: domain => domain,
}
