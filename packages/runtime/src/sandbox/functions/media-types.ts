/**
 * The choice of a format by `provides`. The source text of the class of this file is evaluated inside the context of a
 * design document, like the functions of `environment.ts`. A design document that replaces built-in functions changes
 * its own responses only.
 */

/** A function that a show or list function offered for one format. */
export interface Offer { readonly format: string; readonly render: unknown }

/** An offer with the media type that the response gets. */
export interface Selection { readonly render: unknown; readonly mediaType: string }

/** The formats of one call: those of CouchDB, and those that the function registers. */
export class MediaTypes {
  readonly #formats = {
    __proto__: null,
    all: ['*/*'],
    text: ['text/plain; charset=utf-8', 'txt'],
    html: ['text/html; charset=utf-8'],
    xhtml: ['application/xhtml+xml', 'xhtml'],
    xml: ['application/xml', 'text/xml', 'application/x-xml'],
    js: ['text/javascript', 'application/javascript', 'application/x-javascript'],
    css: ['text/css'],
    ics: ['text/calendar'],
    csv: ['text/csv'],
    rss: ['application/rss+xml'],
    atom: ['application/atom+xml'],
    yaml: ['application/x-yaml', 'text/yaml'],
    multipart_form: ['multipart/form-data'],
    url_encoded_form: ['application/x-www-form-urlencoded'],
    json: ['application/json', 'text/x-json'],
  } as unknown as Record<string, readonly string[] | undefined>

  /** Adds a format, or replaces its media types. The first media type is that of the response. */
  register(format: string, mediaTypes: readonly string[]): void {
    this.#formats[format] = mediaTypes
  }

  /**
   * Returns the offer that answers a request: the one named by the parameter `format` of its query, or else the one
   * whose media type the Accept header prefers. Of equally good offers the first one is returned. An empty parameter or
   * header counts as absent.
   *
   * @param request the object that the function received
   * @throws an array `['error', 'not_acceptable', reason]`
   */
  select(offers: readonly Offer[], request: unknown): Selection {
    const { query, headers } = Object(request) as { readonly query?: unknown; readonly headers?: unknown }
    const { format } = Object(query) as { readonly format?: unknown }
    const accept = `${(Object(headers) as { readonly Accept?: unknown }).Accept || '*/*'}`
    const selected = format ? this.#byFormat(offers, `${format}`) : this.#byAccept(offers, accept)
    if (selected !== undefined) return selected
    const offered = offers.map(offer => this.#typesOf(offer).join(', ') || offer.format).join(', ')
    throw ['error', 'not_acceptable', `Content-Type ${format || accept} not supported, try one of: ${offered}`]
  }

  #typesOf({ format }: Offer): readonly string[] {
    return this.#formats[format] ?? []
  }

  #byFormat(offers: readonly Offer[], format: string): Selection | undefined {
    const offer = offers.find(each => each.format === format)
    return offer && { render: offer.render, mediaType: this.#typesOf(offer)[0] ?? '' }
  }

  #byAccept(offers: readonly Offer[], accept: string): Selection | undefined {
    let selected: Selection | undefined
    let best = 0
    for (const offer of offers) {
      for (const mediaType of this.#typesOf(offer)) {
        const value = this.#quality(accept, mediaType)
        if (value <= best) continue
        best = value
        selected = { render: offer.render, mediaType }
      }
    }
    return selected
  }

  /**
   * Returns the quality that an Accept header gives to a media type: that of the most precise range. A more precise
   * range counts a little more, which decides among media types of equal quality.
   */
  #quality(accept: string, mediaType: string): number {
    let precision = -1
    let quality = 0
    for (const range of accept.split(',')) {
      const exact = this.#precision(this.#essence(range), this.#essence(mediaType))
      if (exact <= precision) continue
      precision = exact
      const given = Number(/;\s*q=([^;]*)/i.exec(range)?.[1] ?? 1)
      quality = Number.isNaN(given) ? 1 : given
    }
    return quality > 0 ? quality + precision / 1e6 : 0
  }

  /** Returns type and subtype, without parameters. */
  #essence(mediaType: string): string {
    return (mediaType.split(';')[0] as string).trim().toLowerCase()
  }

  /** Returns how precisely a range of an Accept header names the media type; -1 when it does not match. */
  #precision(range: string, type: string): number {
    if (range === type) return 2
    if (range === '*/*' || range === '*' || type === '*/*') return 0
    return range.endsWith('/*') && type.startsWith(range.slice(0, -1)) ? 1 : -1
  }
}
