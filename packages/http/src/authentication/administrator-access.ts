/** Finds settings with which no administrator could log in, so that nobody could use or correct them over HTTP. */
import { parseValues, type OptionValues } from '@sectional/core/options'
import { authenticationDeclarations } from '../settings/authentication-options.ts'
import { handlerDeclarations, type HandlerName } from '../settings/handler-options.ts'
import { tokenDeclarations } from '../settings/token-options.ts'
import { tokenKeysSection } from '../tokens/configured-keys.ts'
import { familyOf } from '../tokens/token-algorithms.ts'

/** Section -> key -> text. */
type Settings = ReadonlyMap<string, ReadonlyMap<string, string>>

const { authenticationHandlers, proxyUsesSecret } = handlerDeclarations
const { sessionSecret } = authenticationDeclarations
const { tokenAlgorithms, tokenIssuer, keySetUrl } = tokenDeclarations
const declarations = {
  authenticationHandlers, proxyUsesSecret, sessionSecret, tokenAlgorithms, tokenIssuer, keySetUrl,
}
type Options = OptionValues<typeof declarations>

/** For each handler: why no administrator can log in by it, with a way out; null when one may be able to. */
const obstacles: Readonly<Record<HandlerName, (options: Options, settings: Settings) => string | null>> = {
  // There always is an administrator with a password, and POST /_session needs no handler.
  cookie: () => null, default: () => null, jwt: tokenObstacle, proxy: proxyObstacle,
}

/**
 * Returns why no administrator could log in with these settings, and what would help; null when one can. It is not
 * known whether a proxy or the issuer of tokens names an administrator, so a handler that works is enough.
 *
 * @param settings those in effect, with their defaults. Declared options must have values that they allow
 */
export function accessProblem(settings: Settings): string | null {
  const options = parseValues(declarations, (section, key) => settings.get(section)?.get(key))
  const handlers = options.authenticationHandlers
  const reasons = handlers.map(handler => obstacles[handler](options, settings))
  if (reasons.includes(null)) return null
  return `no administrator could log in any more with the authentication handlers ${handlers.join(', ')}. `
    + `${reasons.join('; ')}; or add cookie or default to ${authenticationHandlers.name}`
}

function tokenObstacle(
  { tokenAlgorithms: algorithms, tokenIssuer: issuer, keySetUrl: url }: Options, settings: Settings,
): string | null {
  const families = new Set(algorithms.map(familyOf))
  const hasKey = [...settings.get(tokenKeysSection)?.keys() ?? []]
    .some(name => [...families].some(family => name.startsWith(`${family}:`)))
  const mayFetch = (issuer !== '' || url !== '') && [...families].some(family => family !== 'hmac')
  return hasKey || mayFetch ? null : `There is no key of tokens for jwt: set one in ${tokenKeysSection}, or `
    + `${tokenIssuer.name} or ${keySetUrl.name}, for one of ${tokenAlgorithms.name}`
}

function proxyObstacle({ proxyUsesSecret: needsSecret, sessionSecret: secret }: Options): string | null {
  return needsSecret && secret === '' ? `The proxy cannot know the secret: set ${sessionSecret.name}` : null
}
