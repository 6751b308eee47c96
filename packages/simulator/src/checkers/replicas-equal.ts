import type { LocalDocument } from '@sectional/core'
import type { DocumentContents, ReplicaContents } from './disk-contents.ts'
import type { FinalState, Findings } from './final-state.ts'

/**
 * With a smaller `_revs_limit` only leaves are compared, because the ancestors that a replica has then depend on the
 * order in which branches arrived.
 */
const revsLimitMin = 100

/**
 * At rest, all replicas of a range have equal trees, bodies of leaves and local documents, and each is consistent in
 * itself.
 */
export function replicasEqual({ databases }: Pick<FinalState, 'databases'>): Findings {
  return [...databases].flatMap(([name, { record, replicas }]) => {
    const stemmed = record.revsLimit < revsLimitMin
    const problems = replicas.flatMap(({ node, range, problems: found }) =>
      found.map(problem => `${name} ${range} on ${node}: ${problem}`))
    const byRange = Map.groupBy(replicas, replica => replica.range)
    return [
      ...problems,
      ...[...byRange.values()].flatMap(([first, ...others]) =>
        others.flatMap(other => differences(name, first!, other, stemmed))),
    ]
  })
}

function differences(name: string, a: ReplicaContents, b: ReplicaContents, stemmed: boolean): string[] {
  const where = `${name} ${a.range}: ${a.node} and ${b.node} differ`
  const found: string[] = []
  for (const id of new Set([...a.documents.keys(), ...b.documents.keys()])) {
    const [left, right] = [textOf(a.documents.get(id), stemmed), textOf(b.documents.get(id), stemmed)]
    if (left !== right) found.push(`${where} in ${id}: ${left} / ${right}`)
  }
  for (const id of new Set([...a.locals.keys(), ...b.locals.keys()])) {
    const [left, right] = [localText(a.locals.get(id)), localText(b.locals.get(id))]
    if (left !== right) found.push(`${where} in _local/${id}: ${left} / ${right}`)
  }
  return found
}

function textOf(contents: DocumentContents | undefined, stemmed: boolean): string {
  if (contents === undefined) return 'absent'
  const branches = contents.branches.map(({ path, deleted }) =>
    `${path.start}-${path.ids.slice(0, stemmed ? 1 : undefined).join(',')}${deleted ? ' deleted' : ''}`).sort()
  const bodies = contents.leaves.map(({ revision, body, attachments }) => {
    const shown = body.length > 80 ? `${body.slice(0, 80)}... (${body.length})` : body
    return [`${revision} ${shown}`, ...attachments.map(({ name, digest }) => `${name} ${digest}`)].join(' ')
  })
  return JSON.stringify({ branches, bodies })
}

function localText(document: LocalDocument | undefined): string {
  if (document === undefined || document.body === null) return 'absent'
  return `0-${document.revision} of ${document.stamp}: ${Buffer.from(document.body).toString().slice(0, 80)}`
}
