/**
 * `sectional recover`: forms a new cluster from one stopped node after a majority of the voters was permanently lost.
 */
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import {
  ClusterRecovery, DamagedControlStoreError, RecoveryError, majorityIsLeft, membersAnswering, type EndangeredShard,
  type RecoveryReport,
} from '@sectional/cluster'
import { formatRange, type PeerStatus } from '@sectional/core'
import { createPeerNetwork } from '@sectional/rpc'
import { StorageError, type RealRuntime } from '@sectional/runtime'
import { LiveConfiguration } from '../configuration/live-configuration.ts'
import { nodeOptions, type NodeOptions } from '../configuration/node-options.ts'
import { clusterCertificate } from './cluster-tls.ts'
import { ConfigurationFolder } from './configuration-folder.ts'
import { StartError, UsageError, parseFlags } from './flags.ts'
import { dataDirectory, openRuntime, parseProcessOptions } from './node-command.ts'

export const recoverUsage = `  sectional recover        forms a cluster anew from one stopped node, when a majority of
                           the voters is lost for good
    --config PATH          as for sectional node
    --yes                  do not ask: what may be lost is printed and accepted`

/** The word that an operator types to confirm. */
const confirmation = 'recover'
/** Milliseconds after which a node that has not answered counts as lost. */
const answerMs = 8000
/** The maximum number of shards that are listed by name; of further ones only the number is printed. */
const listedShardsMax = 100

/** Resolves with the exit status: 0 when the new cluster was formed, 1 when the operator declined. */
export async function runRecover(
  words: readonly string[], env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const { config, yes } = parseFlags(words, { config: { type: 'string', multiple: true }, yes: { type: 'boolean' } })
  if (config === undefined) throw new UsageError('--config is missing')
  const folder = new ConfigurationFolder(config)
  const configuration = await LiveConfiguration.load(folder, env)
  await configuration.check()
  const options = nodeOptions(configuration.settings())
  const processOptions = parseProcessOptions(configuration.settings())
  const directory = dataDirectory(processOptions, folder.folder)
  if (!existsSync(directory)) throw new StartError(`${directory}: there is no such data directory`)
  const links = clusterCertificate(processOptions, folder.folder, Date.now())
  // Members that refuse this node's certificate would be taken for lost ones.
  const problem = links?.problem(Date.now()) ?? null
  if (problem !== null) throw new StartError(problem)
  const runtime = openRuntime({ ...processOptions, logLevel: 'error' }, folder.folder, { links, https: undefined })
  // The timers of the runtime do not keep the process alive.
  const alive = setInterval(() => {}, answerMs)
  try {
    return await recover(runtime, options, yes === true)
  } finally {
    clearInterval(alive)
    await runtime.close()
  }
}

async function recover(runtime: RealRuntime, options: NodeOptions, yes: boolean): Promise<number> {
  const recovery = await openRecovery(runtime, options.name)
  try {
    const { report } = recovery
    console.log(`Asking the ${report.cutOff.length} other members of cluster ${report.clusterId} for up to `
      + `${answerMs / 1000} s ...`)
    const refusal = refusalWhile(await askOthers(runtime, report, options), options.name, report)
    if (refusal !== null) throw new StartError(`${refusal} Nothing was changed.`)
    console.log(describe(report, options.name).join('\n'))
    if (!yes && !await confirmed()) {
      console.log('Nothing was changed.')
      return 1
    }
    const clusterId = await recovery.carryOut(runtime.random)
    console.log(`\n${options.name} is the only member of the new cluster ${clusterId} now. Start it. Then empty the `
      + 'data directory of each other\nnode and start it under its name and address: it joins, and gets the replicas '
      + 'that databases lack.')
    return 0
  } finally {
    await recovery.close()
  }
}

/** @throws StartError that explains what to do */
async function openRecovery(runtime: RealRuntime, node: string): Promise<ClusterRecovery> {
  try {
    return await ClusterRecovery.open(runtime.storage, node, runtime.log)
  } catch (error) {
    if (error instanceof StorageError && error.code === 'locked') {
      throw new StartError('The node is running: stop it first.', { cause: error })
    }
    if (error instanceof RecoveryError || error instanceof DamagedControlStoreError) {
      throw new StartError(error.message, { cause: error })
    }
    throw error
  }
}

async function askOthers(
  runtime: RealRuntime, report: RecoveryReport, { name, cluster }: NodeOptions,
): Promise<readonly PeerStatus[]> {
  if (cluster.secret === null || report.cutOff.length === 0) return []
  const network = createPeerNetwork({
    runtime, secret: cluster.secret, listen: cluster.listen,
    identity: { node: name, address: cluster.advertised, clusterId: null }, log: runtime.log,
  })
  try {
    return await membersAnswering({
      network, clock: runtime.clock, addresses: report.cutOff.map(({ address }) => address), waitMs: answerMs,
    })
  } finally {
    await network.stop()
  }
}

/**
 * Returns why no new cluster may be formed while these members of the old one answer; null when nothing prevents it.
 */
export function refusalWhile(
  statuses: readonly PeerStatus[], node: string, { clusterId, voters }: Pick<RecoveryReport, 'clusterId' | 'voters'>,
): string | null {
  const members = statuses.filter(status => status.clusterId === clusterId)
  const answering = members.map(status => status.node).sort()
  const names = answering.join(', ')
  if (majorityIsLeft(voters, node, answering)) {
    const majority = answering.length === 0 ? 'This node alone is'
      : `${names} ${answering.length === 1 ? 'answers' : 'answer'}, and with this node they are`
    return `${majority} a majority of the voters (${voters.join(', ')}): start this node, and the cluster goes on.`
  }
  const follower = members.find(status => status.leader !== null && status.leader !== node)
  if (follower !== undefined) {
    return `${follower.node} answers and follows a leader, ${follower.leader}. While that one leads, start this node, `
      + 'and the cluster goes on. If it was lost just now, try again in some seconds.'
  }
  if (answering.length === 0) return null
  return `Stop ${names} first: what clients write there would be lost. Choose the survivor with the most replicas for `
    + 'this command; docs/operations.md says how documents that only another survivor has are brought over.'
}

function describe(report: RecoveryReport, node: string): string[] {
  const { cutOff, commitIndex, lastIndex, databases, missing, incomplete, shared } = report
  const unsure = lastIndex - commitIndex
  return [
    `\n${node} forms a new cluster, as its only member, from what is on its disk:`,
    `  ${databases} databases; the metadata log up to ${lastIndex}`
      + (unsure === 0
        ? ', all of it known as committed.'
        : `. The last ${unsure} of its entries may not have been committed; they are kept.`),
    '\nCut off. These members may come back only with an empty data directory; '
      + 'do not start them on their old one again:',
    ...cutOff.map(({ name, address }) => `  ${name} at ${address}`),
    '\nWhat may be lost:',
    '  Metadata: changes that had not reached this node when the others were lost.',
    ...shared === 0
      ? []
      : [`  Documents of ${shared} shards: writes that only those members had on their disks `
        + '(202, or 201 without this node).'],
    ...listed(missing, 'ALL documents of these shards, which have no replica here and begin empty:'),
    ...listed(incomplete, 'Documents of these shards, whose replica here was still being filled:'),
  ]
}

function listed(shards: readonly EndangeredShard[], title: string): string[] {
  if (shards.length === 0) return []
  const lines = shards.slice(0, listedShardsMax).map(({ database, range, otherReplicas }) => {
    const others = otherReplicas.length === 0 ? '' : `, replicas on ${otherReplicas.join(', ')}`
    return `    ${database} ${formatRange(range)}${others}`
  })
  return [
    `  ${title}`, ...lines,
    ...shards.length > listedShardsMax ? [`    and ${shards.length - listedShardsMax} more`] : [],
  ]
}

async function confirmed(): Promise<boolean> {
  if (!process.stdin.isTTY) {
    throw new StartError(
      'The input is no terminal, so it cannot confirm: read the list above, then add --yes. Nothing was changed.',
    )
  }
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return (await terminal.question(`\nType ${confirmation} to accept this: `)).trim() === confirmation
  } finally {
    terminal.close()
  }
}
