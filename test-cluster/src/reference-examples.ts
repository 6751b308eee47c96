/**
 * The examples of docs/reference. Each block marked `sh` is a command, and the block marked `http` directly after it is
 * the expected answer. The expected answer contains the status, some headers and the body. `...` stands for any text.
 * Line breaks and the blanks after them are ignored in both bodies.
 */
import { execFile } from 'node:child_process'

/** The node's address in the pages. */
export const shownAddress = 'http://127.0.0.1:5984'
const commandSecondsMax = 10

export interface ShownAnswer {
  readonly status: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
}

export interface Example {
  /** Line of the command in the page, from 1. */
  readonly line: number
  readonly command: string
  /** The expected answer; null for a command that only prepares others and must succeed. */
  readonly answer: ShownAnswer | null
}

const fence = '```'

export function readExamples(page: string): readonly Example[] {
  const examples: Example[] = []
  const lines = page.split('\n')
  for (let at = 0; at < lines.length; at++) {
    if (lines[at] !== `${fence}sh`) continue
    const line = at + 1
    const command = blockAt(lines, at)
    at += command.length + 1
    const hasAnswer = lines[at + 1] === `${fence}http`
    const answer = hasAnswer ? readAnswer(blockAt(lines, at + 1)) : null
    examples.push({ line, command: command.join('\n'), answer })
  }
  return examples
}

/** Returns the lines between the fence at `begin` and the next one. */
function blockAt(lines: readonly string[], begin: number): readonly string[] {
  return lines.slice(begin + 1, lines.indexOf(fence, begin + 1))
}

function readAnswer(block: readonly string[]): ShownAnswer {
  const blank = block.indexOf('')
  const [status, ...headers] = blank < 0 ? block : block.slice(0, blank)
  return {
    status: status!,
    headers: headers.map(splitHeader),
    body: blank < 0 ? '' : block.slice(blank + 1).join('\n'),
  }
}

function splitHeader(line: string): readonly [name: string, value: string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon), line.slice(colon + 1).trim()]
}

export interface ExampleRunner {
  /** Address of the node that runs the examples. */
  readonly address: string
  /** Credentials `name:password` of its administrator. */
  readonly administrator: string
  /** Folder for files of commands. */
  readonly folder: string
}

/**
 * Runs the command in a shell in which `$COUCH` is the node's address, with the administrator's credentials.
 * @returns the received status line, headers and body; the result of a command without an expected answer is not used
 * @throws Error when the command fails
 */
export function runExample({ command, answer }: Example, runner: ExampleRunner): Promise<string> {
  const { address, administrator, folder } = runner
  const flags = `--silent --show-error --max-time ${commandSecondsMax} ${answer === null ? '--fail' : '--include'}`
  const script = `curl() { command curl ${flags} "$@"; }\n${command.replaceAll(shownAddress, address)}`
  const COUCH = address.replace('://', `://${administrator}@`)
  return new Promise((resolve, reject) => {
    const options = { cwd: folder, env: { ...process.env, COUCH } }
    execFile('sh', ['-e', '-c', script], options, (error, output, complaints) => {
      if (error === null) resolve(output)
      else reject(new Error(`${complaints || error.message}\n${output}`))
    })
  })
}

/** Returns the difference between the expected and the received answer, or null when there is none. */
export function differenceOf(shown: ShownAnswer, came: string, address: string): string | null {
  const end = came.indexOf('\r\n\r\n')
  const [status, ...headers] = came.slice(0, end).split('\r\n')
  if (status !== shown.status) return came
  for (const [name, value] of shown.headers) {
    const line = headers.find(header => header.toLowerCase().startsWith(`${name.toLowerCase()}:`))
    const isShown = line !== undefined && fits(value, splitHeader(line)[1], address)
    if (!isShown) return `${name}: ${value} is shown, not ${line}`
  }
  const body = came.slice(end + 4)
  return fits(joined(shown.body), joined(body), address) ? null : body
}

function joined(body: string): string {
  return body.replace(/\s*\n\s*/g, '')
}

function fits(shown: string, came: string, address: string): boolean {
  const parts = shown.replaceAll(shownAddress, address).split('...').map(escaped)
  return new RegExp(`^${parts.join('[^]*')}$`).test(came)
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}
