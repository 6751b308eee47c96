/** Options of the audit stream. None can be changed over HTTP: an intruder could end the recording. */
import { choice, integer, list, option, text, type OptionType } from '@sectional/core/options'
import { auditEventNames, type AuditEventName } from './audit.ts'

const events: OptionType<readonly AuditEventName[]> = {
  kind: 'comma separated list of events',
  parse: given => list.parse(given).map(item => {
    const name = auditEventNames.find(known => known === item)
    if (name === undefined) throw new Error(`${item} is no event; known: ${auditEventNames.join(', ')}`)
    return name
  }),
  format: names => list.format(names),
}

export const auditDeclarations = {
  auditOutput: option('audit/output', choice('off', 'log', 'file'), {
    default: 'off',
    effect: 'live',
    filesOnly: true,
    help: 'Where security events are recorded: nowhere, in the log of the node (with level info, '
      + 'whatever log/level is), or in a file.',
  }),

  auditFile: option('audit/file', text, {
    default: 'audit.log',
    effect: 'live',
    filesOnly: true,
    help: 'File to which the events are appended, one line of JSON for each, relative to the folder of the '
      + 'configuration. It may be renamed at any time; the next line creates a new one.',
  }),

  auditEvents: option('audit/events', events, {
    default: auditEventNames,
    effect: 'live',
    filesOnly: true,
    help: 'Events that are recorded.',
  }),

  auditBufferBytes: option('audit/buffer_bytes', integer({ min: 65_536, max: 1_073_741_824, unit: 'bytes' }), {
    default: 4_194_304,
    effect: 'live',
    filesOnly: true,
    help: 'Lines that wait for a slow disk. Further lines are lost; their number is recorded and logged.',
  }),
}
