// Makes the answers of two servers comparable. Revisions that the server created become rev:N-a, rev:N-b ... in order
// of first appearance, so that equal revisions stay equal. Update sequences become <seq>. UUIDs, dates, sizes and host
// names become placeholders too.

const comparedHeaders = [
  'content-type', 'etag', 'location', 'cache-control', 'allow', 'www-authenticate', 'accept-ranges', 'content-range',
  'content-encoding', 'content-md5', 'content-disposition', 'x-couch-update-newrev', 'access-control-allow-origin',
  'access-control-allow-credentials', 'access-control-allow-methods', 'access-control-expose-headers',
]
const volatileKeys = new Set([
  'active', 'external', 'file', 'disk_format_version', 'instance_start_time', 'uuid', 'execution_time_ms', 'started_on',
  'updated_on', 'start_time', 'end_time', 'replication_id', 'session_id', 'source_seq', 'pid', 'process_status',
  'last_updated', 'revision_checker_pid',
])
const sequenceKeys = new Set([
  'seq', 'last_seq', 'update_seq', 'purge_seq', 'committed_update_seq', '_local_seq', 'source_last_seq',
  'start_last_seq', 'end_last_seq', 'recorded_seq', 'highest_source_seq_checkpointed', 'checkpointed_source_seq',
  'through_seq',
])
const revisionPattern = /^(\d+)-([0-9a-f]{32})$/
const hashPattern = /^[0-9a-f]{32}$/

export class Normaliser {
  /**
   * @param names pairs of a text of this run and the placeholder that replaces it in the files
   * @param base the server's URL
   * @param literals hashes and dates that the scenario itself contains; they are not replaced
   */
  constructor(names, base, literals) {
    this.names = names
    this.base = base
    this.literals = literals
    this.hashes = new Map()
  }

  revision(generation, hash) {
    const key = `${generation}-${hash}`
    if (this.literals.includes(hash)) return key
    return `rev:${generation}-${this.letters(hash)}`
  }

  text(given) {
    let text = given
    for (const [from, to] of this.names) text = text.split(from).join(to)
    text = text.split(`${this.base.hostname}:${this.base.port}`).join('<host>')
    text = text.replace(/\b(\d+)-([0-9a-f]{32})\b/g, (_, generation, hash) => this.revision(generation, hash))
    text = text.replace(/\b(\d+)-g1[A-Za-z0-9_-]{20,}/g, '<seq>')
    text = text.replace(/("(?:last_)?seq": ?)(?:"[^"]*"|\d+)/g, '$1"<seq>"')
    return text.replace(/^(id: )(?:"[^"]*"|\d+)$/gm, '$1"<seq>"')
  }

  value(value, key) {
    if (Array.isArray(value)) return this.list(value, key)
    if (value && typeof value === 'object') {
      const members = Object.entries(value)
      return Object.fromEntries(members.map(([name, member]) => [this.text(name), this.value(member, name)]))
    }
    if (sequenceKeys.has(key) && ['string', 'number'].includes(typeof value)) return '<seq>'
    if (volatileKeys.has(key) && value !== null && value !== undefined) return `<${typeof value}>`
    if (typeof value !== 'string') return value
    if (hashPattern.test(value) && !this.literals.includes(value)) {
      return this.hashes.has(value) ? this.hash(value) : '<uuid>'
    }
    if (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(value) && !this.literals.includes(value)) return '<date>'
    return this.text(value)
  }

  list(items, key) {
    if (key === 'ids' && items.every(item => typeof item === 'string' && hashPattern.test(item))) {
      return items.map(hash => this.literals.includes(hash) ? hash : this.hash(hash))
    }
    if (key === 'uuids') return items.map(() => '<uuid>')
    return items.map(item => this.value(item, undefined))
  }

  hash(hash) {
    return `hash:${this.letters(hash)}`
  }

  letters(hash) {
    if (!this.hashes.has(hash)) this.hashes.set(hash, this.hashes.size)
    return letters(this.hashes.get(hash))
  }

  headers(headers) {
    const compared = {}
    for (const name of comparedHeaders) {
      if (headers[name] === undefined) continue
      let value = String(headers[name])
      if (name === 'content-type') value = normalType(value)
      if (name === 'etag') value = revisionPattern.test(value.replaceAll('"', '')) ? this.text(value) : '<etag>'
      if (name === 'allow') value = value.split(',').map(method => method.trim()).sort().join(',')
      compared[name] = this.text(value)
    }
    if (headers['set-cookie']) compared['set-cookie'] = headers['set-cookie'].map(normalCookie).join(', ')
    return compared
  }
}

function normalType(type) {
  return type.toLowerCase().replace(/;\s*/g, ';').replace(/boundary=.*/, 'boundary=<b>')
}

function normalCookie(cookie) {
  const text = cookie.replace(/^(\w+)=[^;]+/, '$1=<value>').replace(/Expires=[^;]+/i, 'Expires=<date>')
  return text.split(';').map(part => part.trim()).join('; ')
}

function letters(number) {
  let text = ''
  let left = number
  do {
    text = String.fromCharCode(97 + left % 26) + text
    left = Math.floor(left / 26) - 1
  } while (left >= 0)
  return text
}
