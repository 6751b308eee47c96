/** Options of signed tokens (JWT, docs/reference/authentication.md#jwt). Their keys are in section `[jwt_keys]`. */
import { integer, list, option, optionalText, text, type OptionType } from '@sectional/core/options'

/** Algorithms that are allowed by default. PS256, PS384 and PS512 are known too. */
const defaultAlgorithms = [
  'HS256', 'HS384', 'HS512', 'RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519',
]
const knownAlgorithms = new Set([...defaultAlgorithms, 'PS256', 'PS384', 'PS512'])

const algorithms: OptionType<readonly string[]> = {
  kind: 'comma separated list',
  parse: given => {
    const names = list.parse(given)
    const unknown = names.find(name => !knownAlgorithms.has(name))
    if (unknown !== undefined) {
      throw new Error(`${unknown} is no algorithm of tokens; known: ${[...knownAlgorithms].join(', ')}`)
    }
    return names
  },
  format: names => list.format(names),
}

/** A claim that a token must have. */
export interface RequiredClaim {
  readonly name: string
  /** The value that the claim must have; undefined: any. */
  readonly value: string | undefined
}

const claimForm = /^(?:\{\s*(\w+)\s*,\s*"([^"]+)"\s*\}|(\w+))$/

/** Claims in CouchDB's form: `exp, {iss, "https://id.example"}`. */
const requiredClaims: OptionType<readonly RequiredClaim[]> = {
  kind: 'comma separated list of claims',
  parse: given => {
    const items = given.split(/,(?![^{]*\})/).map(item => item.trim()).filter(item => item !== '')
    return items.map(item => {
      const [, named, value, plain] = claimForm.exec(item) ?? []
      const name = named ?? plain
      if (name === undefined) throw new Error(`${item} is neither the name of a claim nor {name, "value"}`)
      return { name, value }
    })
  },
  format: claims => claims.map(({ name, value }) => value === undefined ? name : `{${name}, "${value}"}`).join(', '),
}

const loopback = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/** Keys that come over an unencrypted network could be anybody's. */
const secureUrl: OptionType<string> = {
  kind: 'https URL',
  parse: given => {
    if (given === '') return given
    const url = URL.parse(given)
    if (url === null) throw new Error('only a URL is allowed')
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && loopback.test(url.hostname))) {
      throw new Error('only https is allowed, or http to this computer')
    }
    if (url.username !== '' || url.password !== '') throw new Error('a URL with credentials is not allowed')
    if (url.hash !== '') throw new Error('a URL with a fragment is not allowed')
    return given
  },
  format: value => value,
}

export const tokenDeclarations = {
  tokenAlgorithms: option('jwt_auth/algorithms', algorithms, {
    default: defaultAlgorithms,
    effect: 'live',
    clusterWide: true,
    help: 'Algorithms that are accepted in signed tokens. PS256, PS384 and PS512 can be added.',
  }),

  requiredClaims: option('jwt_auth/required_claims', requiredClaims, {
    default: [{ name: 'exp', value: undefined }],
    effect: 'live',
    clusterWide: true,
    help: 'Claims that a token must have: names, or {name, "value"} for a value that is needed. exp and nbf are '
      + 'checked only when they are listed, or when the key of the token was fetched.',
  }),

  rolesClaimName: option('jwt_auth/roles_claim_name', text, {
    default: '_service.roles',
    effect: 'live',
    clusterWide: true,
    help: 'Claim with the roles of the user. Unused when roles_claim_path is set.',
  }),

  rolesClaimPath: option('jwt_auth/roles_claim_path', optionalText, {
    default: undefined,
    effect: 'live',
    clusterWide: true,
    help: 'Path to the roles of the user, with a dot between the names of nested claims. \\. is a dot in a name.',
  }),

  tokenAudiences: option('jwt_auth/audience', list, {
    default: [],
    effect: 'live',
    clusterWide: true,
    help: 'Names of this service. When there are any, a token must have one of them in its claim aud.',
  }),

  /** Empty: tokens may have any issuer. */
  tokenIssuer: option('jwt_auth/issuer', secureUrl, {
    default: '',
    effect: 'live',
    clusterWide: true,
    help: 'When it is set, a token must have it as its claim iss. Without jwks_url, the keys are those that the issuer '
      + 'publishes by OpenID Connect Discovery.',
  }),

  /** Empty: keys are not fetched, or found by discovery. */
  keySetUrl: option('jwt_auth/jwks_url', secureUrl, {
    default: '',
    effect: 'live',
    clusterWide: true,
    help: 'URL of a JSON Web Key Set with the public keys of tokens.',
  }),

  clockToleranceSeconds: option('jwt_auth/clock_tolerance', integer({ min: 0, max: 300, unit: 'seconds' }), {
    default: 0,
    effect: 'live',
    clusterWide: true,
    help: 'Largest difference between the clocks of the issuer and of this node that is tolerated in exp and nbf.',
  }),
}
