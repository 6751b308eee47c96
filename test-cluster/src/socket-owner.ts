/** Finds the process that has a loopback socket in /proc (Linux). */
import { readFileSync, readdirSync, readlinkSync } from 'node:fs'

/** Returns the inode of the socket with these ports, or null. */
export function socketInode(localPort: number, remotePort: number): string | null {
  return inodeOf(`${endpoint(localPort)} ${endpoint(remotePort)}`)
}

/** Returns the process that listens on the port. */
export function listenerProcess(port: number): number {
  const inode = inodeOf(`${endpoint(port)} 00000000:0000`)
  const owner = inode === null
    ? undefined
    : readdirSync('/proc').filter(name => /^\d+$/.test(name)).map(Number)
      .find(processId => holdsSocket(processId, inode))
  if (owner === undefined) throw new Error(`nobody listens on ${port}`)
  return owner
}

export function holdsSocket(processId: number, inode: string): boolean {
  try {
    return readdirSync(`/proc/${processId}/fd`).some(fd => {
      try {
        return readlinkSync(`/proc/${processId}/fd/${fd}`) === `socket:[${inode}]`
      } catch {
        return false // closed since it was listed
      }
    })
  } catch {
    return false // the process is gone
  }
}

function inodeOf(endpoints: string): string | null {
  const line = readFileSync('/proc/net/tcp', 'utf8').split('\n').find(text => text.includes(endpoints))
  return line?.trim().split(/\s+/)[9] ?? null
}

/** Returns the address 127.0.0.1 and the port in the format of /proc/net/tcp. */
function endpoint(port: number): string {
  return `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`
}
