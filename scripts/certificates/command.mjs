// The command line of scripts/make-certificates.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import {
  isNode, makeAuthority, makeCertificate, requireOpenssl,
} from '../../packages/server/src/command-line/certificate-authority.ts'

const usage = `usage: scripts/make-certificates --nodes NODE,... --out FOLDER [--days N] [--renew]

Makes a private certificate authority, and for each node a key and a certificate for its links to other nodes and for
HTTPS. The authority of an existing FOLDER is used again, so nodes can be added later.

  --nodes NODE,...   names of nodes, for instance node1@db1.example.org,node2@db2.example.org. Further hosts and
                     addresses under which a node is reached follow a "=": node1@db1=db1.example.org+10.0.0.1
  --out FOLDER       FOLDER/authority.pem, FOLDER/authority-key.pem, and in FOLDER/NODE: key.pem, certificate.pem and
                     authority.pem. Keys are readable by their owner only, and are not encrypted
  --days N           how long the certificates of nodes are valid (default 825); the authority is valid for ten years
  --renew            replace the keys and certificates of these nodes; without it, existing files are never replaced

It needs the command openssl.`

const authorityDays = 3650
const daysMax = 3650
const secretMode = 0o600

/** Thrown for what the user can correct. */
class CommandError extends Error {}

try {
  run(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof CommandError) && error.code !== 'NO_OPENSSL') throw error
  console.error(`make-certificates: ${error.message}`)
  process.exitCode = 1
}

function run(words) {
  const { nodes, out, days, renew, help } = parseFlags(words)
  if (help) return console.log(usage)
  if (nodes === undefined || out === undefined) throw new CommandError(`--nodes and --out are needed\n\n${usage}`)
  const validDays = Number(days)
  if (!/^\d+$/.test(days) || validDays < 1 || validDays > daysMax) {
    throw new CommandError(`--days ${days}: only an integer from 1 to ${daysMax} is allowed`)
  }
  const wanted = nodes.split(',').map(parseNode)
  const known = wanted.filter(({ name }) => existsSync(join(out, name)))
  if (!renew && known.length > 0) {
    throw new CommandError(`${known.map(({ name }) => join(out, name)).join(', ')} exists already; `
      + 'nothing was changed. Leave the node out, or replace its certificate with --renew')
  }
  requireOpenssl()
  const authority = openAuthority(out)
  for (const node of wanted) {
    writeNode(join(out, node.name), makeCertificate(authority, { ...node, days: validDays }), authority.certificate)
    console.log(`made ${join(out, node.name)} for ${node.hosts.join(', ')}`)
  }
}

function parseFlags(words) {
  try {
    return parseArgs({
      args: words,
      options: {
        nodes: { type: 'string' }, out: { type: 'string' }, days: { type: 'string', default: '825' },
        renew: { type: 'boolean', default: false }, help: { type: 'boolean', default: false },
      },
    }).values
  } catch (error) {
    throw new CommandError(`${error.message.split('. ')[0]}\n\n${usage}`)
  }
}

/** Parses `name@host`, or `name@host=host+host`. */
function parseNode(text) {
  const [name, others = ''] = text.trim().split('=')
  const hosts = [name.slice(name.indexOf('@') + 1), ...others.split('+').filter(host => host !== '')]
  if (!isNode(name, hosts)) {
    throw new CommandError(`--nodes ${text}: only name@host and name@host=host+host are allowed, with letters, digits, `
      + 'dots, hyphens, and colons of IPv6 addresses')
  }
  return { name, hosts: [...new Set(hosts)] }
}

/** Returns the authority of the folder, which is made when there is none. */
function openAuthority(out) {
  const paths = { key: join(out, 'authority-key.pem'), certificate: join(out, 'authority.pem') }
  const found = Object.values(paths).filter(path => existsSync(path))
  if (found.length === 1) {
    throw new CommandError(`${found[0]} exists, but the other file of the authority is missing; nothing was changed`)
  }
  if (found.length === 2) {
    console.log(`using the authority in ${paths.certificate}`)
    return { key: readFileSync(paths.key, 'utf8'), certificate: readFileSync(paths.certificate, 'utf8') }
  }
  mkdirSync(out, { recursive: true, mode: 0o700 })
  const authority = makeAuthority(authorityDays)
  // An existing file would be an error: `wx` never replaces one.
  writeFileSync(paths.key, authority.key, { mode: secretMode, flag: 'wx' })
  writeFileSync(paths.certificate, authority.certificate, { flag: 'wx' })
  console.log(`made the authority ${paths.certificate}; keep ${paths.key} secret, and not on the nodes`)
  return authority
}

/** Writes or replaces the files of a node. Each file is complete at any time. */
function writeNode(folder, { key, certificate }, authority) {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const [name, text] of [['key.pem', key], ['certificate.pem', certificate], ['authority.pem', authority]]) {
    const path = join(folder, name)
    rmSync(`${path}.new`, { force: true })
    writeFileSync(`${path}.new`, text, { mode: secretMode, flag: 'wx' })
    renameSync(`${path}.new`, path)
  }
}
