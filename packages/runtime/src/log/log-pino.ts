import { mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import pino from 'pino'
import type { DestinationStream, Logger } from 'pino'
import { prettyFactory } from 'pino-pretty'
import type { Log, LogFields } from './log.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

export interface PinoLogOptions {
  readonly level: LogLevel
  /** A file to append to; standard output when absent. */
  readonly file?: string
  /** Fields of every line, for instance the node's name. */
  readonly fields?: LogFields
  /** Replaces the file or standard output. */
  readonly destination?: DestinationStream
  /** Writes lines for a person at a terminal instead of JSON. */
  readonly pretty?: boolean
}

/** Names of members that are redacted when a logged object has them at its top level, or one or two levels below. */
const secretNames = ['password', 'secret', 'authorization', 'cookie', 'token', 'credentials', 'private_key']
const secretPaths = secretNames.flatMap(name => [name, `*.${name}`, `*.*.${name}`])

/** Writes JSON lines with pino, or lines for a terminal. `close` resolves when all lines are written. */
export class PinoLog implements Log {
  readonly #logger: Logger
  readonly #end: () => Promise<void>

  private constructor(logger: Logger, end: () => Promise<void>) {
    this.#logger = logger
    this.#end = end
  }

  static create({ level, file, fields = {}, destination, pretty = false }: PinoLogOptions): PinoLog {
    const own = destination === undefined ? openDestination(file) : undefined
    const output = destination ?? own as DestinationStream
    const logger = pino({
      level,
      base: fields,
      messageKey: 'message',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      serializers: { error: pino.stdSerializers.err, err: pino.stdSerializers.err },
      redact: { paths: secretPaths, censor: '[redacted]' },
    }, pretty ? terminalLines(output, Object.keys(fields)) : output)
    return new PinoLog(logger, own === undefined ? async () => {} : once(() => ended(own)))
  }

  debug(fields: LogFields, message: string): void {
    this.#logger.debug(fields, message)
  }

  info(fields: LogFields, message: string): void {
    this.#logger.info(fields, message)
  }

  warn(fields: LogFields, message: string): void {
    this.#logger.warn(fields, message)
  }

  error(fields: LogFields, message: string): void {
    this.#logger.error(fields, message)
  }

  child(fields: LogFields, level?: LogLevel): Log {
    return new PinoLog(this.#logger.child(fields, { ...level !== undefined && { level } }), this.#end)
  }

  close(): Promise<void> {
    return this.#end()
  }
}

/**
 * @param repeated fields that every line has; they are left out, because a person at the terminal of one node knows
 * them
 */
function terminalLines(output: DestinationStream, repeated: readonly string[]): DestinationStream {
  const format = prettyFactory({
    messageKey: 'message', translateTime: 'SYS:HH:MM:ss.l', singleLine: true, ignore: repeated.join(','),
  })
  return { write: line => output.write(format(line)) }
}

const standardOutput = 1

type Destination = ReturnType<typeof pino.destination>

/** Ends the destination. A write in progress cannot be flushed synchronously, so this waits for the end. */
function ended(destination: Destination): Promise<void> {
  return new Promise(resolve => {
    destination.once('close', resolve)
    destination.once('error', () => resolve())
    destination.end()
  })
}

function once(end: () => Promise<void>): () => Promise<void> {
  let result: Promise<void> | undefined
  return () => result ??= end()
}

function openDestination(file: string | undefined): Destination {
  if (file !== undefined) mkdirSync(dirname(file), { recursive: true })
  // Open the file here. Pino would open it in the background, and could not flush a log that ends before that.
  const destination = pino.destination({ dest: file === undefined ? standardOutput : openSync(file, 'a'), sync: false })
  // A full disk below the log must not end the node.
  destination.once('error', (error: Error) => {
    process.emitWarning(`log lines are lost: ${error.message}`)
    destination.on('error', () => {})
  })
  return destination
}
