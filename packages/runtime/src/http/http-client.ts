/** Requests to other HTTP servers. */

export interface HttpFetchLimits {
  /** The request fails when the whole answer has not arrived after this time, in milliseconds. */
  readonly timeoutMs: number
  /** Largest body; a larger one makes the request fail. */
  readonly bytesMax: number
}

export interface HttpFetched {
  readonly status: number
  readonly body: Uint8Array
}

/** A request without a usable answer. The message has no secrets; it names the cause, and not the URL. */
export class HttpFetchError extends Error {
  override readonly name = 'HttpFetchError'
}

export interface HttpClient {
  /**
   * Sends a GET. A redirect is not followed: it is an answer like any other.
   *
   * @param url with the scheme http or https; the certificate of the server is verified
   * @throws HttpFetchError when there is no answer within the limits
   */
  get(url: string, limits: HttpFetchLimits): Promise<HttpFetched>
}
