/**
 * Renders an event as one line of JSON. Texts of clients cannot forge lines or fields: everything but printable ASCII
 * is escaped, also the characters that some programs read as the end of a line (U+0085, U+2028), and long texts are cut
 * off.
 */
import { formatIsoTime } from '@sectional/core'
import type { AuditEvent } from './audit.ts'

/** Characters of one text. */
const textMax = 256
/** Members of one list. */
const listMax = 20

export type AuditRecord = Readonly<Record<string, unknown>>

/** @param now milliseconds since 1970 */
export function auditRecord(event: AuditEvent, node: string, now: number): AuditRecord {
  return {
    time: timeText(now), node, event: event.event,
    user: bounded(event.user), address: bounded(event.address), request: bounded(event.requestId),
    details: Object.fromEntries(Object.entries(event.details).map(([name, value]) => [name, bounded(value)])),
  }
}

/** Tells how many lines were lost before this one. */
export function lostRecord(count: number, node: string, now: number): AuditRecord {
  return {
    time: timeText(now), node, event: 'lines_lost', user: null, address: null, request: null,
    details: { count },
  }
}

export function auditLine(record: AuditRecord): string {
  const json = JSON.stringify(record)
    .replace(/[^\x20-\x7e]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return `${json}\n`
}

/** UTC with milliseconds: `2025-07-21T16:00:00.123Z`. */
function timeText(ms: number): string {
  return formatIsoTime(ms).replace('Z', `.${String(Math.floor(ms) % 1000).padStart(3, '0')}Z`)
}

function bounded(value: AuditEvent['details'][string]): unknown {
  if (typeof value === 'string') return cut(value)
  if (!Array.isArray(value)) return value
  const list: readonly string[] = value
  if (list.length <= listMax) return list.map(cut)
  return [...list.slice(0, listMax).map(cut), `and ${list.length - listMax} more`]
}

function cut(text: string): string {
  return text.length <= textMax ? text : `${text.slice(0, textMax)}...`
}
