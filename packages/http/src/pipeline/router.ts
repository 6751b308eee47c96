/**
 * A tree of path segments. Literal segments are matched first, then a parameter, then a parameter for the rest of the
 * path.
 */

interface Node<R> {
  readonly literals: Map<string, Node<R>>
  parameter: Node<R> | null
  rest: R | null
  resource: R | null
}

export interface Match<R> { readonly resource: R; readonly params: readonly string[] }

export class Router<R> {
  readonly #root = node<R>()

  /**
   * @param pattern path such as `/_node/{name}/_stats/{path...}`, of literals, parameters, and a parameter for the
   * remaining segments
   */
  add(pattern: string, resource: R): void {
    let at = this.#root
    for (const segment of pattern.split('/').filter(text => text !== '')) {
      if (segment.endsWith('...}')) {
        at.rest = resource
        return
      }
      at = segment.startsWith('{') ? at.parameter ??= node() : literal(at, segment)
    }
    at.resource = resource
  }

  /** Matches decoded segments from index `from` on. Remaining segments become one parameter, joined by `/`. */
  match(segments: readonly string[], from: number): Match<R> | null {
    const params: string[] = []
    const resource = find(this.#root, segments, from, params)
    return resource === null ? null : { resource, params }
  }

  hasLiteral(segment: string): boolean { return this.#root.literals.has(segment) }
}

function node<R>(): Node<R> {
  return { literals: new Map(), parameter: null, rest: null, resource: null }
}

function literal<R>(at: Node<R>, segment: string): Node<R> {
  let next = at.literals.get(segment)
  if (next === undefined) at.literals.set(segment, next = node())
  return next
}

function find<R>(at: Node<R>, segments: readonly string[], index: number, params: string[]): R | null {
  if (index === segments.length) return at.resource
  const segment = segments[index]!
  const next = at.literals.get(segment)
  if (next !== undefined) {
    const found = find(next, segments, index + 1, params)
    if (found !== null) return found
  }
  if (at.parameter !== null) {
    params.push(segment)
    const found = find(at.parameter, segments, index + 1, params)
    if (found !== null) return found
    params.pop()
  }
  if (at.rest === null) return null
  params.push(index === 0 ? segments.join('/') : segments.slice(index).join('/'))
  return at.rest
}
