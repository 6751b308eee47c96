/**
 * The voters and learners of the metadata log. Only one member changes at a time, so that any majority of the old
 * voters and any majority of the new voters share a voter (Ongaro's thesis, 4.1). A configuration takes effect as soon
 * as its entry is in a log.
 */
import type { VotingConfiguration } from '@sectional/core'

/** More voters make every decision slower and add little safety. Further members stay learners. */
export const maxVoters = 5

export type ConfigurationChange = { readonly kind: 'add-learner' | 'promote' | 'remove'; readonly node: string }

export const emptyConfiguration: VotingConfiguration = { voters: [], learners: [] }

/**
 * Returns the configuration after a change.
 * @throws Error when the change does not fit: the node to add is already a member, the node to promote is not a
 *   learner, there are `maxVoters` voters already, or the node to remove is not a member or is the last voter
 */
export function changeConfiguration(before: VotingConfiguration, change: ConfigurationChange): VotingConfiguration {
  const { node } = change
  const votes = before.voters.includes(node)
  const learns = before.learners.includes(node)
  switch (change.kind) {
    case 'add-learner':
      if (votes || learns) throw new Error(`${node} is a member already`)
      return { voters: before.voters, learners: [...before.learners, node].sort() }
    case 'promote':
      if (!learns) throw new Error(`${node} is no learner`)
      if (before.voters.length >= maxVoters) throw new Error(`there are ${maxVoters} voters already`)
      return { voters: [...before.voters, node].sort(), learners: before.learners.filter(other => other !== node) }
    case 'remove':
      if (!votes && !learns) throw new Error(`${node} is no member`)
      if (votes && before.voters.length === 1) throw new Error(`${node} is the last voter`)
      return {
        voters: before.voters.filter(other => other !== node),
        learners: before.learners.filter(other => other !== node),
      }
  }
}

export interface WantedMembers {
  /** The nodes that ought to be members. */
  readonly members: readonly string[]
  /** The leading node. It is removed last, because it steps down when it is removed. */
  readonly leader: string
  /** Returns whether a learner has (nearly) the whole log. */
  readonly caughtUp: (learner: string) => boolean
}

/**
 * Returns the next step from a configuration towards the wanted members, or null when no step is possible or necessary
 * now.
 */
export function nextConfigurationChange(
  current: VotingConfiguration, wanted: WantedMembers,
): ConfigurationChange | null {
  const present = [...current.voters, ...current.learners]
  const excess = present.filter(node => !wanted.members.includes(node)).sort()
  const missing = wanted.members.filter(node => !present.includes(node)).sort()
  const ready = current.learners.filter(node => wanted.members.includes(node) && wanted.caughtUp(node)).sort()
  const leaving = excess.find(node => node !== wanted.leader)
  if (leaving !== undefined && removable(current, leaving)) return { kind: 'remove', node: leaving }
  const arriving = missing[0]
  if (arriving !== undefined) return { kind: 'add-learner', node: arriving }
  const promoted = ready[0]
  if (promoted !== undefined && current.voters.length < maxVoters) return { kind: 'promote', node: promoted }
  if (excess.includes(wanted.leader) && removable(current, wanted.leader)) {
    return { kind: 'remove', node: wanted.leader }
  }
  return null
}

export function encodeConfiguration(configuration: VotingConfiguration): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ voters: configuration.voters, learners: configuration.learners }))
}

/** @throws Error when the bytes are not an encoded configuration */
export function decodeConfiguration(payload: Uint8Array): VotingConfiguration {
  const value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload)) as {
    voters?: unknown
    learners?: unknown
  }
    | null
  const { voters, learners } = value ?? {}
  if (!isNames(voters) || !isNames(learners)) throw new Error('not a voting configuration')
  return { voters, learners }
}

function isNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(name => typeof name === 'string')
}

function removable(current: VotingConfiguration, node: string): boolean {
  return !current.voters.includes(node) || current.voters.length > 1
}
