/** Finds out whether a connection failed because one end speaks TLS and the other does not. */
import { connect } from 'node:tls'
import type { NetworkAddress } from './network.ts'

const probeMsMax = 1000

/**
 * @param error why the connection failed
 * @param speaksTls whether this end speaks TLS
 * @returns a sentence for the operator, or null when TLS is not the reason
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

/** A listener that answers the first message of a TLS handshake, with whatever answer, speaks TLS. */
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
