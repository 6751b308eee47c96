/** Changes options of nodes and databases while they are in use, to values that change no answer to a client. */
import { outcomeOf } from '../workload/client-session.ts'
import type { ClientSession } from '../workload/client-session.ts'
import type { SwarmAction } from './action.ts'

const family = { name: 'options', leftOutChance: 0.5 }
const autoPurgeFamily = { name: 'auto-purge', leftOutChance: 0.7 }

/** Values of options that take effect while a node runs (docs/operations.md), by section and key. */
const nodeOptionValues: Readonly<Record<string, readonly string[]>> = {
  'attachments/compression_level': ['0', '1', '9'],
  'compaction/check_interval_ms': ['1000', '10000', '60000'],
  'compaction/replaced_percent': ['1', '50'],
  'compaction/replaced_bytes': ['1', '1000000'],
  'limits/batched_documents': ['1', '1000'],
  'log/level': ['debug', 'error', 'info'],
  'mango/index_scan_warning_threshold': ['0', '1', '10'],
  'mango/intersection_saved_min': ['1', '1000'],
  'views/cache_bytes': ['0', '1000', '1000000'],
}
const purgedInfosLimits = [1, 5, 1000]

export const optionActions: readonly SwarmAction[] = [
  { name: 'node-option', weight: 2, family, act: changeNodeOption },
  { name: 'purged-infos-limit', weight: 1, family, act: changePurgedInfosLimit },
  { name: 'security', weight: 1, family, act: changeSecurity },
  { name: 'auto-purge', weight: 3, family: autoPurgeFamily, act: changeAutoPurge },
]

async function changeNodeOption(session: ClientSession): Promise<void> {
  const option = session.dice.pick(Object.keys(nodeOptionValues))
  const json = session.dice.pick(nodeOptionValues[option]!)
  await change(session, '', `/_node/_local/_config/${option}`, json, 'node-option')
}

async function changePurgedInfosLimit(session: ClientSession, database: string): Promise<void> {
  const json = session.dice.pick(purgedInfosLimits)
  await change(session, database, `/${database}/_purged_infos_limit`, json, 'purged-infos-limit')
}

async function changeSecurity(session: ClientSession, database: string): Promise<void> {
  const json = { admins: { names: [session.newValue()], roles: [] }, members: { names: [], roles: ['_admin'] } }
  await change(session, database, `/${database}/_security`, json, 'security')
}

/** Deleted documents are then purged in the next round of the upkeep, or never. */
async function changeAutoPurge(session: ClientSession, database: string): Promise<void> {
  const json = session.dice.pick([{ deleted_document_ttl: '1_sec' }, { deleted_document_ttl: '1_min' }, {}])
  await change(session, database, `/${database}/_auto_purge`, json, 'auto-purge')
}

async function change(
  session: ClientSession, database: string, target: string, json: unknown, name: string,
): Promise<void> {
  await session.ask(database, 'PUT', target, { json }, [
    {
      kind: `custom:${name}`, id: '', value: JSON.stringify(json),
      read: ({ status }) => ({ outcome: outcomeOf(status) }),
    },
  ])
}
