/** Finds out whether a connection failed because one end speaks TLS and the other does not. */
import { connect } from 'node:tls'
import type { NetworkAddress } from './network.ts'

const probeMsMax = 1000

/**
 * @param error the error of the failed connection
 * @param speaksTls whether this end uses TLS
 * @returns a sentence for the operator; null when TLS is not the reason
 */
export async function tlsMismatch(
  error: NodeJS.ErrnoException, address: NetworkAddress, speaksTls: boolean,
): Promise<string | null> {
  if (speaksTls) {
    return /WRONG_VERSION_NUMBER|EPROTO/.test(error.code ?? '') ? 'this node speaks TLS and that one does not' : null
  }
  const isCut = error.code === 'ECONNRESET' || error.message === 'socket hang up'
  return isCut && await answersTls(address) ? 'that node speaks TLS and this one does not' : null
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
