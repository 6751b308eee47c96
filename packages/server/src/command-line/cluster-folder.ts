/**
 * What `sectional cluster` keeps between runs: secret, administrator and ports in cluster.json, and for each
 * node a folder with its configuration, data and log.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { editIni } from '../configuration/ini-file.ts'
import { writeDurably } from './durable-file.ts'
import { StartError } from './flags.ts'

/** From an HTTP port to the cluster port of the same node, when the cluster is made. */
const clusterPortDistance = 10_000
const passwordBytes = 15
const secretBytes = 32

export interface Administrator { readonly name: string; readonly password: string }

interface ClusterRecord {
  readonly nodes: number
  /** Of the first node; the cluster's members know each other by these. */
  readonly clusterPort: number
  readonly secret: string
  readonly administrator: Administrator
}

export interface ClusterRequest {
  /** null: as many as there are, or 3. */
  readonly nodes: number | null
  readonly port: number
  readonly administrator: Administrator | null
  readonly fresh: boolean
}

export interface PlannedNode {
  readonly name: string
  readonly folder: string
  /** INI files for `sectional node --config`, in order. */
  readonly configuration: readonly string[]
  readonly logFile: string
  readonly httpPort: number
  readonly clusterPort: number
}

export interface ClusterPlan { readonly administrator: Administrator; readonly nodes: readonly PlannedNode[] }

const recordName = 'cluster.json'
const defaultNodes = 3

/** Makes the folder what the request asks for and says what is to be started. */
export async function prepareCluster(folder: string, request: ClusterRequest): Promise<ClusterPlan> {
  const path = join(folder, recordName)
  if (request.fresh) forget(folder)
  const earlier = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) as ClusterRecord : null
  if (earlier === null && existsSync(folder) && readdirSync(folder).length > 0) {
    throw new StartError(`${folder} holds something else (no ${recordName} in it): name an empty folder by --data`)
  }
  const record = nextRecord(folder, earlier, request)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  await writeDurably(path, JSON.stringify(record, null, 2) + '\n')
  const nodes = Array.from({ length: record.nodes }, (_, index) => planNode(folder, record, request.port, index))
  for (const node of nodes) await writeConfiguration(node, record, nodes, earlier)
  return { administrator: record.administrator, nodes }
}

function nextRecord(folder: string, earlier: ClusterRecord | null, request: ClusterRequest): ClusterRecord {
  if (earlier !== null && request.nodes !== null && request.nodes < earlier.nodes) {
    throw new StartError(`${folder} has the data of ${earlier.nodes} nodes: start them all (--nodes ${earlier.nodes}), or forget them (--fresh)`)
  }
  return {
    nodes: request.nodes ?? earlier?.nodes ?? defaultNodes,
    clusterPort: earlier?.clusterPort ?? request.port + clusterPortDistance,
    secret: earlier?.secret ?? randomBytes(secretBytes).toString('hex'),
    administrator: request.administrator ?? earlier?.administrator ?? { name: 'admin', password: randomBytes(passwordBytes).toString('base64url') },
  }
}

function planNode(folder: string, record: ClusterRecord, port: number, index: number): PlannedNode {
  const label = `node${index + 1}`
  const nodeFolder = join(folder, label)
  return {
    name: `${label}@127.0.0.1`,
    folder: nodeFolder,
    configuration: [join(nodeFolder, 'cluster.ini'), nodeFolder],
    logFile: join(nodeFolder, 'node.log'),
    httpPort: port + index,
    clusterPort: record.clusterPort + index,
  }
}

/** cluster.ini is written anew at each start; local.ini is the node's own, where the API's changes go. */
async function writeConfiguration(node: PlannedNode, record: ClusterRecord, nodes: readonly PlannedNode[], earlier: ClusterRecord | null): Promise<void> {
  const [clusterIni] = node.configuration
  mkdirSync(node.folder, { recursive: true, mode: 0o700 })
  const seeds = nodes.map(({ clusterPort }) => `127.0.0.1:${clusterPort}`).join(',')
  const settings: readonly (readonly [section: string, key: string, value: string])[] = [
    ['node', 'name', node.name],
    ['chttpd', 'port', String(node.httpPort)],
    ['cluster', 'port', String(node.clusterPort)],
    ['cluster', 'seedlist', seeds],
    ['cluster', 'secret', record.secret],
  ]
  const head = '; Written by `sectional cluster` at each start; put your own settings into local.ini beside it.\n'
  await writeDurably(clusterIni!, settings.reduce((text, [section, key, value]) => editIni(text, section, key, value), head))

  const localIni = join(node.folder, 'local.ini')
  const { name, password } = record.administrator
  const known = existsSync(localIni)
  if (!known || earlier?.administrator.name !== name || earlier.administrator.password !== password) {
    await writeDurably(localIni, editIni(known ? readFileSync(localIni, 'utf8') : '', 'admins', name, password))
  }
}

/** Removes what `prepareCluster` and its nodes made, and nothing else. */
function forget(folder: string): void {
  if (!existsSync(join(folder, recordName))) return
  for (const name of readdirSync(folder)) {
    if (name === recordName || /^node\d+$/.test(name)) rmSync(join(folder, name), { recursive: true })
  }
}
