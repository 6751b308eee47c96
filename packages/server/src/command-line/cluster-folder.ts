/**
 * The data folder of `sectional cluster`: secret, administrator and ports in cluster.json, and for each node a folder
 * with its configuration, data and log.
 */
import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { makeDirectory } from '@sectional/runtime'
import { wildcardHosts, type Address } from '../configuration/address.ts'
import { editIni } from '../configuration/ini-file.ts'
import { LiveConfiguration } from '../configuration/live-configuration.ts'
import { apiAddresses, type ApiAddresses } from '../configuration/node-options.ts'
import { httpsPortDistance, nextRecord, readRecord, recordName } from './cluster-record.ts'
import type { Administrator, ClusterRecord, ClusterRequest } from './cluster-record.ts'
import { changesPath, ConfigurationFolder } from './configuration-folder.ts'
import { writeDurably } from './durable-file.ts'
import { lockFolder, type FolderLock } from './folder-lock.ts'
import { folderProblem } from './folder-problem.ts'
import { authorityFolder, authorityPath, prepareCertificates, requireTool, tlsSettings } from './local-certificates.ts'

export interface PlannedNode {
  readonly name: string
  readonly folder: string
  /** INI files for `sectional node --config`, in ascending order of priority. */
  readonly configuration: readonly string[]
  readonly logFile: string
  readonly httpPort: number
  readonly clusterPort: number
  /** null without TLS. */
  readonly httpsPort: number | null
}

export interface ClusterPlan {
  readonly administrator: Administrator
  readonly nodes: readonly PlannedNode[]
  /** The file with the certificate that clients of HTTPS need; null without TLS. */
  readonly authority: string | null
}

export interface PreparedCluster extends ClusterPlan {
  /** Held while the cluster runs. */
  readonly lock: FolderLock
}

interface Plan extends ClusterPlan {
  /** The record of the data that the folder keeps; null when it is empty, or when all its data is removed. */
  readonly kept: ClusterRecord | null
  readonly record: ClusterRecord
  /** The ports of the folder's nodes before and after the change. */
  readonly ports: ReadonlySet<number>
}

/**
 * Prepares the folder for the request, and returns the nodes to start. Writes and removes nothing before the ports are
 * checked and the folder is locked, so a refused start changes nothing.
 *
 * @param checkPorts rejects when one of the ports is in use
 * @throws StartError that explains why the cluster cannot start
 */
export async function prepareCluster(
  folder: string, request: ClusterRequest, checkPorts: (ports: ReadonlySet<number>) => Promise<void>,
): Promise<PreparedCluster> {
  if (request.tls) requireTool()
  if (readRecord(folder) === null) {
    // Check the ports before the lock, which would create the folder. A refused start must not create it.
    await checkPorts(plan(folder, request).ports)
    makeFolder(folder)
  }
  const lock = await lockFolder(folder)
  try {
    const { kept, record, administrator, nodes, authority, ports } = plan(folder, request)
    await checkPorts(ports)
    if (request.fresh) removeCluster(folder)
    await writeDurably(join(folder, recordName), JSON.stringify(record, null, 2) + '\n')
    for (const node of nodes) await writeConfiguration(node, record, nodes, kept)
    if (authority !== null) await prepareCertificates(folder, nodes)
    return { administrator, nodes, authority, lock }
  } catch (error) {
    await lock.release()
    throw folderProblem(error, `${folder} cannot be prepared`)
  }
}

/**
 * Returns where this machine reaches the API of a node, which may have other addresses than the plan in its own files.
 * @throws ConfigurationError for a wrong setting
 */
export async function apiOf(
  node: PlannedNode, environment: Readonly<Record<string, string | undefined>>,
): Promise<ApiAddresses> {
  const configuration = await LiveConfiguration.load(new ConfigurationFolder(node.configuration), environment)
  const { http, https } = apiAddresses(configuration.settings())
  return { http: reachable(http), https: reachable(https) }
}

function reachable({ host, port }: Address): Address {
  return { host: wildcardHosts.includes(host) ? '127.0.0.1' : host, port }
}

function makeFolder(folder: string): void {
  try {
    makeDirectory(folder)
  } catch (error) {
    throw folderProblem(error, `${folder} cannot be created`)
  }
}

/** Computes the plan; changes nothing. */
function plan(folder: string, request: ClusterRequest): Plan {
  const earlier = readRecord(folder)
  const kept = request.fresh ? null : earlier
  const record = nextRecord(folder, kept, request)
  const nodes = planNodes(folder, record)
  // Check the ports of the removed data too: its nodes may still run although their supervisor has ended.
  const old = request.fresh && earlier !== null ? planNodes(folder, earlier) : []
  const ports = new Set([...nodes, ...old].flatMap(({ httpPort, clusterPort, httpsPort }) =>
    [httpPort, clusterPort, ...httpsPort === null ? [] : [httpsPort]]))
  const authority = record.tls === true ? authorityPath(folder) : null
  return { administrator: record.administrator, nodes, authority, kept, record, ports }
}

function planNodes(folder: string, record: ClusterRecord): readonly PlannedNode[] {
  return Array.from({ length: record.nodes }, (_, index) => {
    const label = `node${index + 1}`
    const nodeFolder = join(folder, label)
    return {
      name: `${label}@127.0.0.1`,
      folder: nodeFolder,
      configuration: [join(nodeFolder, 'cluster.ini'), nodeFolder],
      logFile: join(nodeFolder, 'node.log'),
      httpPort: record.port + index,
      clusterPort: record.clusterPort + index,
      httpsPort: record.tls === true ? record.port + httpsPortDistance + index : null,
    }
  })
}

/**
 * Writes the configuration of a node. cluster.ini is rewritten at each start; local.ini belongs to the operator, and
 * receives the administrator that is given on the command line.
 */
async function writeConfiguration(
  node: PlannedNode, record: ClusterRecord, nodes: readonly PlannedNode[], kept: ClusterRecord | null,
): Promise<void> {
  const [clusterIni] = node.configuration
  makeDirectory(node.folder)
  const seeds = nodes.map(({ clusterPort }) => `127.0.0.1:${clusterPort}`).join(',')
  const settings: readonly (readonly [section: string, key: string, value: string])[] = [
    ['node', 'name', node.name],
    ['chttpd', 'port', String(node.httpPort)],
    ['cluster', 'port', String(node.clusterPort)],
    ['cluster', 'seedlist', seeds],
    ['cluster', 'secret', record.secret],
    ...node.httpsPort === null ? [] : tlsSettings(node.httpsPort),
  ]
  const head = '; Written by `sectional cluster` at each start; put your own settings into local.ini beside it.\n'
  await writeDurably(
    clusterIni!, settings.reduce((text, [section, key, value]) => editIni(text, section, key, value), head),
  )

  const localIni = join(node.folder, 'local.ini')
  const { name, password } = record.administrator
  const known = existsSync(localIni)
  if (!known || kept?.administrator.name !== name || kept.administrator.password !== password) {
    await writeDurably(localIni, editIni(known ? readFileSync(localIni, 'utf8') : '', 'admins', name, password))
    // A password that was set over HTTP would override the new one.
    const changes = changesPath(node.folder)
    if (existsSync(changes)) {
      await writeDurably(changes, editIni(readFileSync(changes, 'utf8'), 'admins', name, null))
    }
  }
}

/** Removes only what `prepareCluster` and its nodes created. */
function removeCluster(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (![recordName, authorityFolder].includes(name) && !/^node\d+$/.test(name)) continue
    rmSync(join(folder, name), { recursive: true })
  }
}
