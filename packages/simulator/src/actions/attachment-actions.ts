/**
 * Reads and writes attachments: as resources of their own and inside documents, with unique and with shared contents.
 */
import { attachmentsKept } from '../checkers/attachments-kept.ts'
import { attachmentContent, contentName, readContent } from '../workload/attachment-content.ts'
import type { ContentName } from '../workload/attachment-content.ts'
import { readWritten } from '../workload/client-session.ts'
import type { ClientSession, Reading } from '../workload/client-session.ts'
import type { Answer } from '../world/answer.ts'
import type { SwarmAction } from './action.ts'

const names = ['a', 'b', 'deep/c']
const sharedChance = 0.4
/** The service compresses text, so the bytes on the disk differ from the ones that the client sent. */
const contentTypes = ['application/octet-stream', 'application/octet-stream', 'text/plain']
/** Lengths of the shared contents, as fractions of the maximum. */
const sharedShares = [1, 0.5, 0.05, 0]

const family = { name: 'attachments', leftOutChance: 0.4 }
const checkers = { 'attachments-kept': attachmentsKept }

export const attachmentActions: readonly SwarmAction[] = [
  { name: 'attach', weight: 5, family, act: attach, checkers },
  { name: 'write-attachments', weight: 5, family, act: writeWithAttachments, checkers },
  { name: 'detach', weight: 2, family, act: detach, checkers },
  { name: 'read-attachment', weight: 4, family, act: readAttachment },
]

/** Sends PUT of an attachment. */
async function attach(session: ClientSession, database: string, id: string): Promise<void> {
  const { dice } = session
  const parent = session.known(database, id) ?? null
  const name = dice.pick(names)
  const content = drawContent(session)
  const query = parent === null ? session.quorum('?') : `?rev=${parent}${session.quorum('&')}`
  const payload = { content: { type: dice.pick(contentTypes), text: attachmentContent(content) } }
  const attachments = { inherits: true, contents: { [name]: content } }
  const [operation] = await session.ask(database, 'PUT', `/${database}/${id}/${name}${query}`, payload, [
    { kind: 'attach', id, parent, attachments, read: readWritten },
  ])
  session.remember(operation!)
}

/** Sends DELETE of an attachment. */
async function detach(session: ClientSession, database: string, id: string): Promise<void> {
  const parent = session.known(database, id)
  if (parent === undefined) return
  const name = session.dice.pick(names)
  const target = `/${database}/${id}/${name}?rev=${parent}${session.quorum('&')}`
  // The answer is 200 even when fewer than w replicas have stored the revision, so it promises no more than a 202
  // (docs/reference/attachments.md#delete-dbidattachment).
  const read = (answer: Answer): Reading => {
    const reading = readWritten(answer)
    return answer.status === 200 ? { ...reading, outcome: 'accepted' } : reading
  }
  const attachments = { inherits: true, contents: { [name]: null } }
  const [operation] = await session.ask(database, 'DELETE', target, {}, [
    { kind: 'detach', id, parent, attachments, read },
  ])
  if (operation!.status !== 404) session.remember(operation!)
}

/** Writes a document with attachments. Some of the attachments that it already has are kept. */
async function writeWithAttachments(session: ClientSession, database: string, id: string): Promise<void> {
  const { dice } = session
  const { status, body } = await session.look('GET', `/${database}/${id}`)
  const parent: string | null = status === 200 ? body._rev : null
  const contents: Record<string, ContentName | 'inherited'> = {}
  const json: Record<string, object> = {}
  for (const name of status === 200 ? Object.keys(body._attachments ?? {}) : []) {
    if (!dice.chance(0.7)) continue
    contents[name] = 'inherited'
    json[name] = { stub: true }
  }
  for (let count = dice.integer(1, 2); count > 0; count--) Object.assign(json, inline(session, contents))
  const value = session.newValue()
  const document = { ...session.body(value), _attachments: json, ...(parent === null ? {} : { _rev: parent }) }
  const target = `/${database}/${id}${session.quorum('?')}`
  const [operation] = await session.ask(database, 'PUT', target, { json: document }, [
    { kind: 'write', id, value, parent, attachments: { inherits: false, contents }, read: readWritten },
  ])
  session.remember(operation!)
}

/** Returns one attachment in the form that documents use, and records its content in `contents`. */
export function inline(
  session: ClientSession, contents: Record<string, ContentName | 'inherited'>,
): Record<string, object> {
  const name = session.dice.pick(names)
  const content = drawContent(session)
  contents[name] = content
  const data = Buffer.from(attachmentContent(content)).toString('base64')
  return { [name]: { content_type: session.dice.pick(contentTypes), data } }
}

async function readAttachment(session: ClientSession, database: string, id: string): Promise<void> {
  const name = session.dice.pick(names)
  await session.ask(database, 'GET', `/${database}/${id}/${name}`, {}, [
    { kind: 'read-attachment', id, value: name, read: readAttachmentAnswer },
  ])
}

function readAttachmentAnswer({ status, body }: Answer): Reading {
  if (status !== 200) return { outcome: status === 404 ? 'done' : 'failed' }
  try {
    return { outcome: 'done', readValue: readContent(String(body)) }
  } catch (error) {
    return { outcome: 'done', readValue: (error as Error).message }
  }
}

function drawContent({ name, dice, options, newValue }: ClientSession): ContentName {
  const { attachmentBytesMax } = options
  if (dice.chance(sharedChance)) {
    const number = dice.integer(0, sharedShares.length - 1)
    return contentName('shared', number, Math.floor(attachmentBytesMax * sharedShares[number]!))
  }
  return contentName(name, Number(newValue().split('.').at(-1)), Math.floor(dice.fraction() ** 2 * attachmentBytesMax))
}
