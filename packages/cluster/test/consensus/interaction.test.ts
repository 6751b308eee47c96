/**
 * Interactions of consensus cores as scripts that can be read and reviewed (scripts/*.txt). Each step is a command,
 * `----`, and its output. `RAFT_REWRITE=1` writes the current output into the scripts; review the difference before you
 * commit it.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { RaftMessage } from '@sectional/core'
import type { ConfigurationChange } from '../../src/consensus/configuration.ts'
import type { RaftWork } from '../../src/consensus/raft-work.ts'
import { describe as describeEntry, RaftWorld } from './raft-world.ts'

const folder = join(import.meta.dirname, 'scripts')

/**
 * A fraction with which elections start after 9 ticks. Followers forget a leader after 5, so that they can vote before
 * they start an election themselves.
 */
const electionFraction = 0.8

class Script {
  #world = new RaftWorld(7, {}, electionFraction)

  run(line: string): string {
    const [command = '', ...words] = line.split(' ')
    const [id = ''] = words
    switch (command) {
      case 'one-entry-per-append':
        this.#world = new RaftWorld(7, { maxEntriesPerAppend: 1 }, electionFraction)
        return 'so be it'
      case 'pieces-of-ten-bytes':
        this.#world = new RaftWorld(7, { snapshotPieceBytes: 10 }, electionFraction)
        return 'so be it'
      case 'bootstrap': this.#world.bootstrap(words); return this.#states(words)
      case 'fresh': this.#world.addFresh(id); this.#world.start(id); return this.#states([id])
      case 'tick':
        for (let left = Number(words[1] ?? 1); left > 0; left -= 1) this.#world.tick(id)
        return this.#states([id])
      case 'campaign': return this.#campaign(id)
      case 'begin':
        return this.#world.begin(id)
          ? this.#sent('at once', this.#world.node(id).inFlight?.messages ?? [])
          : 'nothing to do'
      case 'finish': return this.#finished(this.#world.finish(id))
      case 'work': this.#world.begin(id); return this.#finished(this.#world.finish(id))
      case 'settle': return this.#settle(words)
      case 'deliver': return this.#deliver(words)
      case 'drop': return this.#drop(id)
      case 'propose': return this.#world.propose(id, words.slice(1).join(' '))
      case 'change': return this.#change(id, { kind: words[1] as ConfigurationChange['kind'], node: words[2] ?? '' })
      case 'read': this.#world.core(id).readIndex(Number(words[1])); return 'asked'
      case 'crash': this.#world.crash(id); return 'down'
      case 'start': this.#world.start(id); return this.#states([id])
      case 'compact':
        this.#world.compact(id, Number(words[1]))
        return `log begins after ${this.#world.core(id).log.baseIndex}`
      case 'partition':
        this.#world.partition(...words.join(' ').split(' | ').map(group => group.split(' ')))
        return 'cut'
      case 'heal': this.#world.cuts.clear(); return 'whole'
      case 'state': return this.#states(words.length > 0 ? words : [...this.#world.nodes.keys()])
      case 'log': return this.#logs(words)
      default: throw new Error(`unknown command ${command}`)
    }
  }

  #campaign(id: string): string {
    for (let ticks = 0; ticks < 20 && this.#world.core(id).role === 'follower'; ticks += 1) this.#world.tick(id)
    return this.#states([id])
  }

  #settle(ids: readonly string[]): string {
    const trace: string[] = []
    const deliver = this.#world.deliver.bind(this.#world)
    this.#world.deliver = message => { trace.push(describeMessage(message)); deliver(message) }
    this.#world.settle(ids.length > 0 ? ids : undefined)
    this.#world.deliver = deliver
    return [...trace, this.#states([...this.#world.nodes.keys()])].join('\n')
  }

  /** Delivers the messages of the ways `a>b` that are queued now; without ways, all messages. */
  #deliver(ways: readonly string[]): string {
    const chosen = this.#world.messages.filter(message => ways.length === 0 || ways.includes(way(message)))
    this.#world.messages = this.#world.messages.filter(message => !chosen.includes(message))
    for (const message of chosen) this.#world.deliver(message)
    return chosen.map(describeMessage).join('\n') || 'nothing'
  }

  #drop(where: string): string {
    const lost = this.#world.messages.filter(message => where === '' || way(message) === where)
    this.#world.messages = this.#world.messages.filter(message => !lost.includes(message))
    return lost.map(describeMessage).join('\n') || 'nothing'
  }

  #change(id: string, change: ConfigurationChange): string {
    try {
      return this.#world.change(id, change)
    } catch (error) {
      return `refused: ${(error as Error).message}`
    }
  }

  #sent(when: string, messages: readonly RaftMessage[]): string {
    return messages.map(message => `${when} ${describeMessage(message)}`).join('\n') || 'disk busy'
  }

  #finished(work: RaftWork | null): string {
    if (!work) return 'nothing to do'
    const lines = work.messages.map(message => `sent ${describeMessage(message)}`)
    if (work.persist) {
      const { hardState, entries, snapshot } = work.persist
      lines.push([
        `disk term ${hardState.term} vote ${hardState.vote} commit ${hardState.commit}`,
        ...snapshot ? [`snapshot ${snapshot.index}`] : [],
        ...entries.map(entry => `${entry.index}=${describeEntry(entry)}`),
      ].join(' '))
    }
    if (work.committed.length > 0) lines.push(`applied ${work.committed.map(entry => entry.index).join(' ')}`)
    for (const read of work.reads) lines.push(`read ${read.id} ${read.index === null ? 'refused' : `at ${read.index}`}`)
    lines.push(...work.messagesAfterPersist.map(message => `then sent ${describeMessage(message)}`))
    return lines.join('\n')
  }

  #states(ids: readonly string[]): string {
    return ids.map(id => {
      const { core, appliedIndex, reads } = this.#world.node(id)
      if (!core) return `${id} down`
      const { voters, learners } = core.configuration
      const { log } = core
      return [
        `${id} ${core.role} term ${core.term} last ${log.lastIndex}/${log.lastTerm} commit ${core.commit}`,
        `applied ${appliedIndex} voters ${voters.join(',') || '-'}`,
        ...learners.length > 0 ? [`learners ${learners.join(',')}`] : [],
        ...reads.splice(0).map(read => `read ${read.id} ${read.index === null ? 'refused' : `at ${read.index}`}`),
      ].join(' ')
    }).join('\n')
  }

  #logs(ids: readonly string[]): string {
    return ids.map(id => {
      const { log } = this.#world.core(id)
      const entries = log.slice(log.baseIndex + 1, log.lastIndex).map(({ index, term, kind, payload }) =>
        `${index}=${term}${kind === 'command' ? `:${new TextDecoder().decode(payload)}` : ''}`)
      return `${id} ${entries.join(' ')}`
    }).join('\n')
  }
}

function way(message: RaftMessage): string { return `${message.from}>${message.to}` }

function describeMessage(message: RaftMessage): string {
  const head = `${way(message)} ${message.type} term ${message.term}`
  switch (message.type) {
    case 'vote-request': return `${head}${message.preVote ? ' pre' : ''} last ${message.lastIndex}/${message.lastTerm}`
    case 'vote-reply': return `${head}${message.preVote ? ' pre' : ''} ${message.granted ? 'granted' : 'refused'}`
    case 'append': return [
      `${head} after ${message.previousIndex}/${message.previousTerm} commit ${message.commit}`,
      ...message.entries.map(entry => `${entry.index}/${entry.term}`),
    ].join(' ')
    case 'append-reply': return message.success
      ? `${head} has ${message.matchIndex}`
      : `${head} refused ${message.matchIndex} try ${message.conflictIndex}`
    case 'snapshot': {
      const { offset, state: { length }, totalBytes } = message
      const piece = length < totalBytes ? ` bytes ${offset}+${length} of ${totalBytes}` : ''
      return `${head} at ${message.index}/${message.snapshotTerm}${piece}`
    }
    case 'snapshot-reply': return `${head} at ${message.index} holds ${message.received}`
  }
}

describe('consensus interactions', () => {
  for (const name of readdirSync(folder).filter(file => file.endsWith('.txt')).sort()) {
    it(name.replace('.txt', '').replaceAll('-', ' '), () => {
      const path = join(folder, name)
      const text = readFileSync(path, 'utf8')
      const script = new Script()
      const blocks = text.trimEnd().split('\n\n').map(block => {
        const lines = block.split('\n')
        const divider = lines.indexOf('----')
        const input = divider < 0 ? lines : lines.slice(0, divider)
        const commands = input.filter(line => !line.startsWith('#'))
        if (commands.length === 0) return block
        const output = commands.map(command => script.run(command)).join('\n')
        return [...input, '----', output].join('\n')
      })
      const now = `${blocks.join('\n\n')}\n`
      if (process.env['RAFT_REWRITE'] === '1') writeFileSync(path, now)
      else expect(now).to.equal(text)
    })
  }
})
