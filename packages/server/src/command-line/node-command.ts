/** `sectional node`: runs one node in this process until SIGINT or SIGTERM. */
import { resolve } from 'node:path'
import type { OptionValues } from '@sectional/core/options'
import { hashAdminPassword, httpDeclarations, parseAdminHash } from '@sectional/http'
import { connectionDeclarations, createRealRuntime, sandboxDeclarations, type RealRuntime } from '@sectional/runtime'
import { prepareAdministrators } from '../configuration/administrators.ts'
import { warnOfDefects } from '../configuration/defective-values.ts'
import { refuseUnusableAddresses } from '../configuration/listening-addresses.ts'
import { LiveConfiguration } from '../configuration/live-configuration.ts'
import { nodeDeclarations, processDeclarations } from '../configuration/node-declarations.ts'
import { nodeOptions } from '../configuration/node-options.ts'
import { parseOptions, type Settings } from '../configuration/settings.ts'
import { warnOfUnknownOptions } from '../configuration/unknown-options.ts'
import { createNode, type Node } from '../node.ts'
import { readCertificates, type Certificates } from './certificates.ts'
import { ConfigurationFolder } from './configuration-folder.ts'
import { StartError, UsageError, parseFlags } from './flags.ts'
import { folderProblem } from './folder-problem.ts'
import { packageVersion, wantedNode } from './package-files.ts'
import { setV8Flags } from './v8-flags.ts'

export const nodeUsage = `  sectional node           runs one node until SIGINT or SIGTERM
    --config PATH          folder (local.ini, local.d/*.ini) or INI file; may be repeated, the last counts most`

const startDeclarations = {
  ...nodeDeclarations,
  ...processDeclarations,
  passwordIterations: httpDeclarations.passwordIterations,
}

/** The options that a process needs before it creates a node. */
export interface ProcessOptions extends OptionValues<typeof startDeclarations> {
  readonly connections: OptionValues<typeof connectionDeclarations>
  readonly sandbox: OptionValues<typeof sandboxDeclarations>
}

/** @throws ConfigurationError with one line per wrong value */
export function parseProcessOptions(settings: Settings): ProcessOptions {
  return {
    ...parseOptions(startDeclarations, settings),
    connections: parseOptions(connectionDeclarations, settings),
    sandbox: parseOptions(sandboxDeclarations, settings),
  }
}

export async function runNode(
  words: readonly string[], env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  setV8Flags()
  const { config } = parseFlags(words, { config: { type: 'string', multiple: true } })
  if (config === undefined) throw new UsageError('--config is missing')
  const folder = new ConfigurationFolder(config)
  const configuration = await LiveConfiguration.load(folder, env)
  await configuration.check()
  const settings = configuration.settings()
  const options = nodeOptions(settings)
  const processOptions = parseProcessOptions(settings)
  const certificates = readCertificates(configuration, folder.folder, Date.now())
  const runtime = openRuntime(processOptions, folder.folder, certificates)
  const stopWatching = certificates.watch({
    clock: runtime.clock, log: runtime.log, metrics: runtime.metrics,
    onChange: listener => configuration.onChange(listener),
  })
  try {
    const administrators = await prepareAdministrators(configuration, text => parseAdminHash(text) !== null,
      (name, password) => hashAdminPassword(name, password, {
        iterations: processOptions.passwordIterations, machine: runtime.machine, random: runtime.random,
        clusterSecret: processOptions.clusterSecret,
      }))
    const version = packageVersion()
    const { advertised, seeds } = options.cluster
    const tls = certificates.links !== undefined
    runtime.log.info({ version, administrators: administrators.length, cluster: advertised, seeds, tls }, 'starting')
    const wanted = wantedNode(process.versions.node)
    if (wanted !== null) {
      const found = process.versions.node
      runtime.log.warn({ found, wanted }, 'this Node.js lacks security fixes: install a version that has them')
    }
    warnOfUnknownOptions(configuration, runtime.log)
    warnOfDefects(configuration, runtime.log)
    refuseUnusableAddresses(configuration, runtime.http)
    const failed = Promise.withResolvers<never>()
    const node = createNode(runtime, { options, configuration, version, onFatal: failed.reject })
    await startNode(node)
    runtime.log.info({ http: node.http, ...node.https && { https: node.https } }, 'listening')
    const reason = await Promise.race([stopReason(), failed.promise])
    runtime.log.info({ reason }, 'stopping')
    await node.stop()
    runtime.log.info({}, 'stopped')
    return 0
  } finally {
    stopWatching()
    await runtime.close()
  }
}

/** Returns the path of the node's data directory. */
export function dataDirectory({ databaseDirectory }: ProcessOptions, folder: string): string {
  return resolve(folder, databaseDirectory)
}

/** @throws StartError when the data directory cannot be used */
export function openRuntime(
  options: ProcessOptions, folder: string, { links, https }: Pick<Certificates, 'links' | 'https'>,
): RealRuntime {
  const { name, logLevel, connections, sandbox } = options
  const directory = dataDirectory(options, folder)
  try {
    return createRealRuntime({
      dataDirectory: directory,
      folder,
      log: { level: logLevel, fields: { node: name }, pretty: process.stdout.isTTY === true },
      http: { ...connections, ...https && { https } },
      sandbox,
      ...links && { network: { tls: links } },
    })
  } catch (error) {
    throw folderProblem(error, `${directory} cannot be used for data ([couchdb] database_dir)`)
  }
}

async function startNode(node: Node): Promise<void> {
  try {
    await node.start()
  } catch (error) {
    throw new StartError(`The node cannot start: ${(error as Error).message}`, { cause: error })
  }
}

/** Resolves with the reason to stop: a signal, or the end of the supervisor that started this process. */
function stopReason(): Promise<string> {
  return new Promise(resolve => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve(signal))
    if (process.channel === undefined) return
    process.on('disconnect', () => resolve('the supervisor is gone'))
    // The channel to the supervisor must not keep the process alive after the node has stopped.
    process.channel.unref()
  })
}
