/**
 * Virtual hosts: `[vhosts]` maps requests to a host to a path of the node, for instance `blog.example.org =
 * /blog/_design/site/_rewrite`. A rule has the form `host[:port][/path] = /target`. A host may begin with the label `*`
 * for one or more labels, and `:name` stands for one label. Both can be used in the target.
 */

import { splitTarget } from './request-path.ts'

export const virtualHostsSection = 'vhosts'

export interface VirtualHost {
  /** The labels of the host from right to left, in lower case, or `:name`; `*` only at the end. */
  readonly labels: readonly string[]
  /** null: any port. */
  readonly port: string | null
  /** The segments with which the path of a request must begin. They are replaced by the target. */
  readonly path: readonly string[]
  readonly target: readonly string[]
}

const ruleForm = /^(\*|(?:\*\.)?:?[\w-]+(?:\.:?[\w-]+)*)(?::(\d{1,5}))?((?:\/[^/?#\s]+)*)\/?$/
const targetForm = /^(?:\/[^/?#\s]+)*\/?$/
/** The Host header of a request that a rule can match. Labels with other characters could change the path. */
const hostForm = /^([\w-]+(?:\.[\w-]+)*)\.?(?::(\d{0,5}))?$/
/** The longest name of a host (RFC 1035), and a port. */
const hostLengthMax = 260
/** The label that stands for one or more labels. */
const anyLabels = '*'

/** @throws Error whose message says what is allowed */
export function parseVirtualHost(rule: string, target: string): VirtualHost {
  const [, host, port, path] = ruleForm.exec(rule) ?? []
  if (host === undefined) throw new Error('the name must have the form host, host:port or host:port/path')
  if (!targetForm.test(target) || target === '') {
    throw new Error('only a path that begins with / and has no query is allowed')
  }
  const labels = host.split('.').reverse().map(label => label.startsWith(':') ? label : label.toLowerCase())
  const parsed = { labels, port: port ?? null, path: segmentsOf(path ?? ''), target: segmentsOf(target) }
  const unknown = parsed.target.find(part => (part.startsWith(':') || part === anyLabels) && !labels.includes(part))
  if (unknown !== undefined) throw new Error(`${unknown} is not in the name of the host`)
  return parsed
}

/**
 * Returns rules so that the most specific one is first: with more fixed labels, more labels, a port, and a longer path.
 */
export function bySpecificity(rules: readonly VirtualHost[]): readonly VirtualHost[] {
  const rank = ({ labels, port, path }: VirtualHost): readonly number[] => [
    labels.filter(label => !label.startsWith(':') && label !== anyLabels).length,
    labels.filter(label => label !== anyLabels).length, port === null ? 0 : 1, path.length,
  ]
  return [...rules].sort((a, b) => {
    const [left, right] = [rank(a), rank(b)]
    return right.map((value, index) => value - left[index]!).find(difference => difference !== 0) ?? 0
  })
}

/**
 * Returns the target of a request at a virtual host: path and query, percent-encoded as the client sent them. null: no
 * rule matches.
 *
 * @param rules as `bySpecificity` returns them
 * @param host the Host header
 * @param target the target of the request, in origin form or absolute form
 * @param globals first segments of paths that are the same at every host
 */
export function virtualTarget(
  rules: readonly VirtualHost[], host: string | undefined, target: string, globals: readonly string[],
): string | null {
  const [, name, port] = host !== undefined && host.length <= hostLengthMax ? hostForm.exec(host) ?? [] : []
  if (name === undefined) return null
  const { path, search } = splitTarget(target)
  const segments = path.slice(1).split('/')
  if (globals.includes(segments[0]!)) return null
  const labels = name.toLowerCase().split('.').reverse()
  for (const rule of rules) {
    if (rule.port !== null && Number(rule.port) !== Number(port)) continue
    if (rule.path.some((segment, index) => segments[index] !== segment)) continue
    const bound = bind(rule.labels, labels)
    if (bound === null) continue
    const prefix = rule.target.flatMap(part => bound.get(part) ?? [part])
    return `/${[...prefix, ...segments.slice(rule.path.length)].join('/')}${search === '' ? '' : `?${search}`}`
  }
  return null
}

/** Returns the labels that `*` and each `:name` of a rule stand for; null when the host does not match. */
function bind(rule: readonly string[], labels: readonly string[]): ReadonlyMap<string, readonly string[]> | null {
  const bound = new Map<string, readonly string[]>()
  for (const [index, part] of rule.entries()) {
    if (labels[index] === undefined) return null
    if (part === anyLabels) return bound.set(part, labels.slice(index))
    if (part.startsWith(':')) bound.set(part, [labels[index]])
    else if (part !== labels[index]) return null
  }
  return rule.length === labels.length ? bound : null
}

function segmentsOf(path: string): readonly string[] {
  return path.split('/').filter(segment => segment !== '')
}
