/**
 * Writes src/schema/schema-text.ts from the .proto files: `node packages/rpc/proto/embed.ts`. A test checks that both
 * are equal.
 */
import { readFileSync, writeFileSync } from 'node:fs'

const columnsMax = 120

/** Returns the source of schema-text.ts. @param read returns the text of a .proto file */
export function embedSchema(read: (file: string) => string): string {
  const files = ['link.proto', 'verbs.proto', 'indexes.proto', 'raft.proto']
  const quoted = files.map(file =>
    `  ${JSON.stringify(file)}: ${'`'}${folded(withoutComments(read(file))).replace(/[\\`$]/g, '\\$&')}${'`'},\n`)
  return [
    '/**',
    ' * The text of proto/*.proto without its comments, made by proto/embed.ts; do not edit. This copy exists because',
    ' * nothing outside `runtime` reads files.',
    ' */',
    `export const schemaText = {\n${quoted.join('')}} as const\n`,
  ].join('\n')
}

function withoutComments(text: string): string {
  return text.split('\n').filter(line => !/^\s*(?:\/\/.*)?$/.test(line)).map(line => `${line}\n`).join('')
}

/** Puts each message and oneof on one line where it fits, so that the file stays short. */
function folded(text: string): string {
  return text.replace(/^( *)\S.*\{\n[^{}]*\}/gm, (block, indent: string) => {
    const line = indent + block.split('\n').map(part => part.trim()).join(' ')
    return line.length <= columnsMax ? line : block
  })
}

if (import.meta.main) {
  writeFileSync(
    new URL('../src/schema/schema-text.ts', import.meta.url),
    embedSchema(file => readFileSync(new URL(file, import.meta.url), 'utf8')),
  )
}
