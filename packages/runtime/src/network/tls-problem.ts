/** Finds out whether a connection failed because of the certificate of an end, or because only one end speaks TLS. */
import { connect } from 'node:tls'
import type { TLSSocket } from 'node:tls'
import type { NetworkAddress, RefusedCaller } from './network.ts'

const probeMsMax = 1000

const onAllOrNone = 'cluster/tls_key_file must be set on every node or on none'
/** Codes of Node for a certificate without an authority that is known here. */
const untrusted = /^(UNABLE_TO_(VERIFY_LEAF|GET_ISSUER_CERT)|SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED)/
const expired = /^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/

/**
 * @param error the error of the failed connection
 * @param speaksTls whether this end uses TLS
 * @returns a sentence for the operator; null when TLS is not the reason
 */
export async function tlsProblem(
  error: NodeJS.ErrnoException, address: NetworkAddress, speaksTls: boolean,
): Promise<string | null> {
  const { code = '', message } = error
  const isCut = code === 'ECONNRESET' || message === 'socket hang up'
  if (!speaksTls) {
    return isCut && await answersTls(address) ? `that node speaks TLS and this one does not; ${onAllOrNone}` : null
  }
  if (/WRONG_VERSION_NUMBER|EPROTO/.test(code)) return `this node speaks TLS and that one does not; ${onAllOrNone}`
  const certificate = certificateProblem(code)
  if (certificate !== null) return certificate
  // A listener that refuses a certificate closes the connection after the handshake of TLS 1.3.
  return isCut
    ? `${message}. If this repeats, it refuses the certificate of this node, whose authority must be in its `
      + 'cluster/tls_ca_file'
    : null
}

/**
 * Returns why a listener with TLS refused a caller; null when the caller, for instance a scanner of ports, has closed
 * the connection during the handshake.
 */
export function refusalOf(
  { code = '' }: NodeJS.ErrnoException, { authorizationError }: TLSSocket,
): Omit<RefusedCaller, 'host'> | null {
  // Node.js sets the code of the certificate's problem, although it declares an Error.
  const problem = authorizationError as unknown as string | null | undefined
  if (problem) return { cause: 'certificate', reason: certificateProblem(problem) ?? `its certificate: ${problem}` }
  if (code === 'ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE') {
    return { cause: 'certificate', reason: `it has no certificate; ${onAllOrNone}` }
  }
  if (!code.startsWith('ERR_SSL_')) return null
  return { cause: 'garbage', reason: `it does not speak TLS as this node does (${code}); ${onAllOrNone}` }
}

function certificateProblem(code: string): string | null {
  if (untrusted.test(code)) return 'no authority in cluster/tls_ca_file of this node has signed its certificate'
  if (expired.test(code)) return 'its certificate, or that of its authority, has expired or is not valid yet'
  return null
}

/**
 * Whether the listener at an address speaks TLS: it does if it gives any TLS answer to the first message of a
 * handshake.
 */
function answersTls({ host, port }: NetworkAddress): Promise<boolean> {
  return new Promise(resolve => {
    // No data is sent over this connection, so the certificate does not matter.
    const socket = connect({ host, port, rejectUnauthorized: false, timeout: probeMsMax })
    const settle = (answer: boolean): void => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('secureConnect', () => settle(true))
    socket.once('error', error => settle(/alert|certificate/i.test(error.message)))
    socket.once('timeout', () => settle(false))
    socket.once('close', () => settle(false))
  })
}
