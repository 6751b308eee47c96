import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { expect } from 'chai'
import { Connections } from '../../src/http/connections.ts'
import { StalledAnswers } from '../../src/http/stalled-answers.ts'

function socketFrom(remoteAddress: string): Socket {
  const events = new EventEmitter()
  return Object.assign(events, { remoteAddress, destroy: () => events.emit('close') }) as unknown as Socket
}

describe('connections', () => {
  it('are limited for an IPv6 network as for an address, since one client can use all of its addresses', () => {
    const connections = new Connections({ total: 10, perAddress: 2 }, new StalledAnswers())
    const open = (address: string): Socket => {
      const socket = socketFrom(address)
      connections.add(socket)
      connections.begin(socket, {} as ServerResponse)
      return socket
    }
    const sockets = ['2001:db8::1', '2001:db8::2', '2001:db8::3', '2001:db8:0:1::1', '::ffff:10.0.0.1'].map(open)
    expect(sockets.map(socket => connections.isRefused(socket))).to.deep.equal([false, false, true, false, false])
    for (const socket of sockets) socket.destroy()
  })
})
