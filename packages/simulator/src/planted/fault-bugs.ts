import type { RaftMessage } from '@sectional/core'
import type { Connection } from '@sectional/runtime'
import { withChanges, withRaftMessages } from './planted-bug.ts'
import type { PlantedBug } from './planted-bug.ts'

/** Bugs that have an effect only during one kind of fault. */
export const faultBugs: readonly PlantedBug[] = [
  {
    name: 'snapshot-that-loses-an-entry',
    does: 'a snapshot of the metadata log lacks the newest database, so a node that installs it lacks it too',
    caughtBy: ['metadata-log', 'converge', 'fatal', 'start'],
    plant: () => () => withRaftMessages(lacking),
  },
  {
    name: 'deaf-second-connection',
    does: 'of two connections between two nodes, the newer one loses every other frame',
    caughtBy: ['one-branch', 'converge', 'metadata-log', 'acknowledged-kept', 'internal-error', 'changes-complete'],
    plant: () => () => {
      const open = new Map<string, number>()
      return {
        runtime: runtime => ({
          ...runtime,
          network: withChanges(runtime.network, {
            connect: async (address, options) => {
              const connection = await runtime.network.connect(address, options)
              return counted(connection, address.host, open)
            },
            listen: (address, onConnection, onRefused) => runtime.network.listen(
              address, connection => onConnection(counted(connection, connection.remoteAddress.split(':')[0]!, open)),
              onRefused,
            ),
          }),
        }),
      }
    },
  },
]

function lacking(message: RaftMessage): RaftMessage {
  if (message.type !== 'snapshot' || message.state.length < message.totalBytes) return message
  const [head, ...databases] = Buffer.from(message.state).toString().trimEnd().split('\n')
  const state = new Uint8Array(Buffer.from(`${[head, ...databases.slice(0, -1)].join('\n')}\n`))
  return { ...message, state, totalBytes: state.length, checksum: null }
}

/** Returns a connection that loses frames while there is another one with the same host. */
function counted(connection: Connection, host: string, open: Map<string, number>): Connection {
  const others = open.get(host) ?? 0
  open.set(host, others + 1)
  let sent = 0
  return {
    get remoteAddress() { return connection.remoteAddress },
    get certifiedNames() { return connection.certifiedNames },
    get bufferedBytes() { return connection.bufferedBytes },
    send: frame => { if (others === 0 || ++sent % 2 === 0) connection.send(frame) },
    get onFrame() { return connection.onFrame },
    set onFrame(callback) { connection.onFrame = callback },
    get onClose() { return connection.onClose },
    set onClose(callback) {
      connection.onClose = reason => {
        open.set(host, (open.get(host) ?? 1) - 1)
        callback?.(reason)
      }
    },
    pause: () => connection.pause(),
    resume: () => connection.resume(),
    limitReceived: bytesMax => connection.limitReceived(bytesMax),
    close: reason => connection.close(reason),
  }
}
