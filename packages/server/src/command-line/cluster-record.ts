/** cluster.json: the data that `sectional cluster` keeps in a data folder between runs. */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { nodeDeclarations } from '../configuration/node-declarations.ts'
import { StartError } from './flags.ts'
import { folderProblem } from './folder-problem.ts'
import { lockName } from './folder-lock.ts'

/** The difference between the cluster port and the HTTP port of a node. */
const clusterPortDistance = 10_000
/** The difference between the HTTPS port and the HTTP port of a node. */
export const httpsPortDistance = 1000
const defaultPort = nodeDeclarations.httpPort.default
const defaultNodes = 3
const passwordBytes = 15
const secretBytes = 32
const nodesMax = 5
const portMax = 65_535

export interface Administrator { readonly name: string; readonly password: string }

export interface ClusterRecord {
  readonly nodes: number
  /** HTTP port of the first node. */
  readonly port: number
  /** The cluster port of the first node. It stays the same, because the cluster's metadata contains these addresses. */
  readonly clusterPort: number
  readonly secret: string
  readonly administrator: Administrator
  /** Whether nodes serve HTTPS, and speak TLS to each other. Absent in records of earlier versions. */
  readonly tls?: boolean
}

export interface ClusterRequest {
  /** null selects the number of nodes that have data, or 3. */
  readonly nodes: number | null
  /** The HTTP port of the first node; null selects the stored one, or the default port of a single node. */
  readonly port: number | null
  readonly administrator: Administrator | null
  /** Turns TLS on; otherwise it stays as it is. */
  readonly tls: boolean
  readonly fresh: boolean
}

export const recordName = 'cluster.json'

/**
 * Returns the record of a folder; null when the folder is empty or does not exist.
 * @throws StartError when the folder contains other data, or the record cannot be read
 */
export function readRecord(folder: string): ClusterRecord | null {
  if (!existsSync(folder)) return null
  const names = reading(folder, () => readdirSync(folder)).filter(name => name !== lockName)
  if (names.length === 0) return null
  if (!names.includes(recordName)) {
    throw new StartError(`${folder} contains other files (but no ${recordName}): choose an empty folder with --data`)
  }
  const path = join(folder, recordName)
  return parseRecord(path, reading(path, () => readFileSync(path, 'utf8')))
}

function reading<Result>(path: string, read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    throw folderProblem(error, `${path} cannot be read`)
  }
}

function parseRecord(path: string, text: string): ClusterRecord {
  try {
    const record = JSON.parse(text) as Partial<ClusterRecord> | null
    const { nodes, clusterPort = 0, secret, administrator, port = clusterPort - clusterPortDistance } = record ?? {}
    const isWhole = isWithin(nodes, nodesMax) && isWithin(clusterPort, portMax) && isWithin(port, portMax)
      && isText(secret) && isText(administrator?.name) && isText(administrator?.password)
    if (!isWhole) throw new Error('nodes, port, clusterPort, secret or administrator is missing or invalid')
    // Records of earlier versions have no HTTP port.
    return { port, ...record } as ClusterRecord
  } catch (error) {
    throw new StartError(`${path} is damaged: ${(error as Error).message}. Restore the file from a copy; without it `
      + 'the nodes have no secret. To start over without a copy, stop all nodes that use this data and remove the '
      + 'folder')
  }
}

function isWithin(value: unknown, max: number): boolean {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

/** @throws StartError when the request has fewer nodes than have data */
export function nextRecord(folder: string, earlier: ClusterRecord | null, request: ClusterRequest): ClusterRecord {
  if (earlier !== null && request.nodes !== null && request.nodes < earlier.nodes) {
    throw new StartError(`${folder} has the data of ${earlier.nodes} nodes: start them all (--nodes ${earlier.nodes}), `
      + 'or remove all data (--fresh)')
  }
  const port = request.port ?? earlier?.port ?? defaultPort
  return {
    nodes: request.nodes ?? earlier?.nodes ?? defaultNodes,
    port,
    clusterPort: request.port === null && earlier !== null ? earlier.clusterPort : port + clusterPortDistance,
    secret: earlier?.secret ?? randomBytes(secretBytes).toString('hex'),
    administrator: request.administrator ?? earlier?.administrator
      ?? { name: 'admin', password: randomBytes(passwordBytes).toString('base64url') },
    tls: request.tls || earlier?.tls === true,
  }
}
