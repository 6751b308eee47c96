/** `sectional cluster`: runs a whole cluster on this machine, in the foreground. scripts/start runs it. */
import { get } from 'node:http'
import { createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { resolve } from 'node:path'
import { formatAddress } from '../configuration/address.ts'
import { ConfigurationError } from '../configuration/settings.ts'
import { apiOf, prepareCluster, type ClusterPlan, type PlannedNode } from './cluster-folder.ts'
import { administratorVariable, chooseAdministrator } from './administrator-choice.ts'
import { StartError, UsageError, integerFlag, parseFlags } from './flags.ts'
import { NodeProcess } from './node-process.ts'

export const clusterUsage = `  sectional cluster        runs a cluster of nodes on this machine until Ctrl-C
    --nodes 1|3|5          number of nodes (default: as many as the data has, else 3); with more than before, the
                           new ones join
    --port PORT            HTTP port of the first node, the others follow (default: the last one, else 5984); the
                           ports between the nodes are 10000 above
    --admin NAME:PASSWORD  administrator instead of "admin" with a generated password. Other users of the machine
                           can see it in the list of processes; these they cannot:
    --admin-file FILE      reads NAME:PASSWORD from the first line of a file
    ${administratorVariable}        environment variable with NAME:PASSWORD
    --tls                  also serve HTTPS (the HTTP port plus 1000), and use TLS between the nodes, with
                           certificates of a private authority in the data folder; needs the command openssl
    --data FOLDER          where data, configuration and logs are kept (default ./data)
    --fresh                removes the data that the folder holds`

const portMax = 55_000
const pollMs = 100
const requestMsMax = 1000
/** Milliseconds after which the start is reported as slow; the command continues to wait. */
const slowStartMs = 30_000

export async function runCluster(words: readonly string[]): Promise<number> {
  const flags = parseFlags(words, {
    nodes: { type: 'string' }, port: { type: 'string' }, admin: { type: 'string' },
    'admin-file': { type: 'string' }, tls: { type: 'boolean' }, data: { type: 'string' },
    fresh: { type: 'boolean' },
  })
  if (flags.nodes !== undefined && !['1', '3', '5'].includes(flags.nodes)) {
    throw new UsageError(`--nodes ${flags.nodes}: only 1, 3 and 5 are allowed`)
  }
  const plan = await prepareCluster(resolve(flags.data ?? 'data'), {
    nodes: flags.nodes === undefined ? null : Number(flags.nodes),
    port: flags.port === undefined ? null : integerFlag('port', flags.port, 1, portMax),
    administrator: chooseAdministrator({ admin: flags.admin, file: flags['admin-file'] }, process.env),
    tls: flags.tls ?? false,
    fresh: flags.fresh ?? false,
  }, checkPorts)

  const stopAsked = stopSignal()
  const nodes = plan.nodes.map(node => new NodeProcess(node, line => console.error(line)))
  for (const node of nodes) node.start()
  await announceWhenReady(plan, stopAsked)
  await stopAsked.promise
  console.log('Stopping the nodes ...')
  await Promise.all(nodes.map(node => node.stop()))
  await plan.lock.release()
  console.log('Stopped.')
  return 0
}

interface StopSignal { readonly promise: Promise<void>; readonly asked: boolean }

function stopSignal(): StopSignal {
  const state = { asked: false, promise: Promise.resolve() }
  state.promise = new Promise(resolve => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => { state.asked = true; resolve() })
  })
  return state
}

async function checkPorts(ports: ReadonlySet<number>): Promise<void> {
  const busy: number[] = []
  for (const port of ports) if (!await isFree(port)) busy.push(port)
  if (busy.length === 0) return
  throw new StartError(`Port ${busy.join(', ')} on 127.0.0.1 is in use: stop the process that listens there, or choose `
    + 'other ports with --port, which determines all ports of the cluster.')
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(false) : reject(new StartError(`Port ${port}: ${error.message}`)))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

async function announceWhenReady({ administrator, nodes, authority }: ClusterPlan, stop: StopSignal): Promise<void> {
  const startedAt = performance.now()
  const waiting = new Set(nodes)
  let slow = false
  while (waiting.size > 0 && !stop.asked) {
    for (const node of waiting) if (await isUp(node)) waiting.delete(node)
    if (!slow && performance.now() - startedAt > slowStartMs && waiting.size > 0) {
      slow = true
      console.error(`Still waiting for ${[...waiting].map(node => `${node.name} (log: ${node.logFile})`).join(', ')}`)
    }
    await Promise.race([pause(pollMs), stop.promise])
  }
  if (stop.asked) return
  console.log(`Sectional is ready (${((performance.now() - startedAt) / 1000).toFixed(1)} s):`)
  for (const node of nodes) {
    const { http, https } = await apiOf(node, process.env)
    const secure = node.httpsPort === null ? '' : `   https://${formatAddress(https)}`
    console.log(`  ${node.name.padEnd(18)} http://${formatAddress(http)}${secure}`)
  }
  if (authority !== null) console.log(`Certificate for clients of HTTPS (curl --cacert): ${authority}`)
  console.log(`Administrator: ${administrator.name}   password: ${administrator.password}`)
  console.log('Ctrl-C stops the cluster; its data is kept.')
}

async function isUp(node: PlannedNode): Promise<boolean> {
  const target = await apiOf(node, process.env).catch((error: unknown) => {
    if (error instanceof ConfigurationError) return null
    throw error
  })
  // A node with a wrong setting does not start. Its process reports the setting.
  if (target === null) return false
  return new Promise(resolve => {
    const request = get({ ...target.http, path: '/_up', timeout: requestMsMax, agent: false }, response => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    request.on('timeout', () => request.destroy())
    request.on('error', () => resolve(false))
  })
}
