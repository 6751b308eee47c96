/** Headers that the API reads, with values near those that it accepts. */

export const administrator = `Basic ${Buffer.from('admin:password').toString('base64')}`

const json = { 'content-type': 'application/json' }

/** Headers with which most requests get behind authentication and the check of the content type. */
export const goodHeaders: readonly Readonly<Record<string, string>>[] = [
  { ...json, authorization: administrator, accept: 'application/json' },
  { ...json, authorization: administrator }, json,
]

export const headerValues: Readonly<Record<string, readonly string[]>> = {
  'accept': ['application/json', '*/*', 'text/html', 'multipart/mixed', 'multipart/related', 'text/event-stream'],
  'accept-encoding': ['gzip', 'identity;q=0', 'gzip;q=0, *'],
  'authorization': [
    administrator, 'Basic', 'Basic !', 'Basic YTpi', 'Bearer a.b.c', 'Digest x', 'Bearer eyJhbGciOiJub25lIn0.e30.',
  ],
  'content-encoding': ['gzip', 'identity', 'deflate'],
  'content-type': [
    'application/json', 'application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data; boundary=b',
    'multipart/related; boundary="b"', 'multipart/related;', 'image/png',
  ],
  'cookie': ['AuthSession=', 'AuthSession=YWRtaW46NjAwOg', 'AuthSession="x"', 'a=b; AuthSession=!!!', ';;='],
  'destination': ['b', 'b?rev=1-a', '_design/x', '/db/b', 'http://node.example:5984/db/b', 'http://other/'],
  'etag': ['"x"'],
  'host': ['node.example:5984', 'a,b', ''],
  'if-match': ['1-a', '"1-a"', 'W/"1-a"', '*'],
  'if-none-match': ['"1-a"', 'W/"1-a"', '*', '"a","b"'],
  'last-event-id': ['0', 'now', '1-AQAA'],
  'origin': ['http://node.example:5984', 'null', 'http://other.example'],
  'access-control-request-method': ['GET', 'PUT'],
  'access-control-request-headers': ['x-a', 'content-type, x'],
  'prefer': ['return=minimal', 'return=representation'],
  'range': ['bytes=0-1', 'bytes=-2', 'bytes=5-', 'bytes=0-0,2-3', 'bytes=9-1', 'items=1-2', 'bytes=',
    'bytes=0-99999999999'],
  'referer': ['http://node.example:5984/x', 'http://other/'],
  'sec-fetch-site': ['same-origin', 'cross-site', 'none'],
  'x-couch-full-commit': ['true', 'false'],
  'x-couch-persist': ['false'],
  'x-couch-request-id': ['abc'],
  'x-couchdb-www-authenticate': ['Basic'],
  'x-couchdb-requested-path': ['/x'],
  'x-forwarded-for': ['1.2.3.4', '::1', '1.2.3.4, 5.6.7.8'],
  'x-forwarded-host': ['other.example'],
  'x-forwarded-proto': ['https'],
  'x-http-method-override': ['GET', 'DELETE', 'PUT', 'COPY', 'CONNECT', 'HEAD', 'TRACE'],
}
