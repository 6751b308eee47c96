/** Options of requests and responses, and of cross-origin requests and frames of browsers. */
import { choice, flag, integer, list, option, optionalText } from '@sectional/core/options'
import { crossOriginDeclarations } from './cross-origin-options.ts'
import { headerValue } from './header-types.ts'

/** A smaller limit would refuse the path of this option, so that nobody could correct it over HTTP. */
const uriLengthLeast = 128
const sizes = { min: 1, max: 2 ** 46, infinite: true }

export const requestDeclarations = {
  requestBytesMax: option('chttpd/max_http_request_size', integer({ ...sizes, unit: 'bytes' }), {
    default: 4_294_967_296,
    effect: 'live',
    help: 'Largest request body; limits/body_bytes applies too.',
  }),

  uriLengthMax: option('chttpd/max_uri_length', integer({ ...sizes, min: uriLengthLeast, unit: 'characters' }), {
    default: Infinity,
    effect: 'live',
    help: 'Longest request target; a longer one gets 414.',
  }),

  plusIsSpace: option('chttpd/decode_plus_to_space', flag, {
    default: true,
    effect: 'live',
    help: 'Read + as a blank in database names and document ids of a path.',
  }),

  /** Content type of JSON responses for clients that do not ask for `application/json`. */
  jsonDefaultType: option('chttpd/json_default_type', headerValue, {
    default: 'text/plain;charset=utf-8',
    effect: 'live',
    help: 'Content type of JSON for clients whose Accept header does not name application/json.',
  }),

  scriptsAllowed: option('chttpd/allow_jsonp', flag, {
    default: false,
    effect: 'live',
    help: 'Answer GET requests that have the parameter callback with a script that calls this function (JSONP). Pages '
      + 'of every site can then read what everybody may read. CORS is the better way.',
  }),

  serverHeaderVersions: option('chttpd/server_header_versions', flag, {
    default: true,
    effect: 'live',
    help: 'Include the version of Sectional in the Server header.',
  }),

  preferMinimal: option('chttpd/prefer_minimal', optionalText, {
    default: undefined,
    effect: 'live',
    help: 'Headers that an answer has when the request has the header Prefer: return=minimal, comma separated. Unset: '
      + 'the list of CouchDB.',
  }),

  /** Log level of the line that is written for each request. */
  requestLog: option('log/requests', choice('info', 'debug', 'none'), {
    default: 'debug',
    effect: 'restart',
    help: 'Level of the line written for each request.',
  }),

  crossOriginEnabled: option('chttpd/enable_cors', flag, {
    default: false,
    effect: 'live',
    help: 'Allow cross-origin requests of browsers (CORS), as the options of the section cors say.',
  }),

  ...crossOriginDeclarations,

  framesLimited: option('chttpd/enable_xframe_options', flag, {
    default: false,
    effect: 'live',
    help: 'Send the header X-Frame-Options, with which browsers show answers in frames only where the section '
      + 'x_frame_options allows it, or else nowhere (DENY).',
  }),

  framesOfSameOrigin: option('x_frame_options/same_origin', flag, {
    default: false,
    effect: 'live',
    help: 'Allow frames of pages of this server (SAMEORIGIN).',
  }),

  frameHosts: option('x_frame_options/hosts', list, {
    default: [],
    effect: 'live',
    help: 'Addresses of this server, such as https://db.example:6984, whose answers have ALLOW-FROM with this address; '
      + '* stands for all. Modern browsers ignore ALLOW-FROM.',
  }),
}
