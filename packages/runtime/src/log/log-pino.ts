import { mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import pino from 'pino'
import type { DestinationStream, Logger } from 'pino'
import { prettyFactory } from 'pino-pretty'
import type { Log, LogFields } from './log.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

export interface PinoLogOptions {
  readonly level: LogLevel
  /** A file to append to; absent: standard output. */
  readonly file?: string
  /** Carried by every line, for instance the node's name. */
  readonly fields?: LogFields
  /** In place of a file or standard output. */
  readonly destination?: DestinationStream
  /** Lines for a person at a terminal instead of JSON. */
  readonly pretty?: boolean
}

/**
 * Members that never reach the log, should somebody log an object that has them: at the top, or one or two levels down.
 */
const secretNames = ['password', 'secret', 'authorization', 'cookie', 'token', 'credentials', 'private_key']
const secretPaths = secretNames.flatMap(name => [name, `*.${name}`, `*.*.${name}`])

/** JSON lines by pino, or lines for a terminal. `close` waits until everything is written. */
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

  child(fields: LogFields): Log {
    return new PinoLog(this.#logger.child(fields), this.#end)
  }

  close(): Promise<void> {
    return this.#end()
  }
}

/** @param repeated fields that every line has: a person at the terminal of one node knows them */
function terminalLines(output: DestinationStream, repeated: readonly string[]): DestinationStream {
  const format = prettyFactory({
    messageKey: 'message', translateTime: 'SYS:HH:MM:ss.l', singleLine: true, ignore: repeated.join(','),
  })
  return { write: line => output.write(format(line)) }
}

const standardOutput = 1

type Destination = ReturnType<typeof pino.destination>

/** A write that is under way cannot be waited for in the same turn, so the end is awaited. */
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
  // Opened here, for pino opens in the background and cannot write out a log that ends before that.
  const destination = pino.destination({ dest: file === undefined ? standardOutput : openSync(file, 'a'), sync: false })
  // A full disk below the log must not end the node.
  destination.once('error', (error: Error) => {
    process.emitWarning(`log lines are lost: ${error.message}`)
    destination.on('error', () => {})
  })
  return destination
}
