// One-shot setup of docker-compose.yml: on the first run it makes the cluster secret and the administrator's
// password (SECTIONAL_ADMIN_PASSWORD when given) and keeps them in the volume that the nodes read as local.d;
// later runs only print the password again.
import { pbkdf2Sync, randomBytes } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'

const folder = process.argv[2] ?? '/etc/sectional/local.d'
const settingsFile = `${folder}/10-cluster.ini`
const administratorFile = `${folder}/administrator.txt`
const iterations = 600_000

function writePrivate(file, text) {
  writeFileSync(`${file}.new`, text, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

if (!existsSync(settingsFile)) {
  const password = process.env.SECTIONAL_ADMIN_PASSWORD || randomBytes(15).toString('base64url')
  const salt = randomBytes(16).toString('hex')
  const key = pbkdf2Sync(password, salt, iterations, 32, 'sha256').toString('hex')
  writePrivate(administratorFile, `admin:${password}\n`)
  const storedHash = `-pbkdf2:sha256-${key},${salt},${iterations}`
  const secret = randomBytes(32).toString('hex')
  writePrivate(settingsFile, `[cluster]\nsecret = ${secret}\n\n[admins]\nadmin = ${storedHash}\n`)
}
const [, name, password] = /^([^:]*):(.*)/.exec(readFileSync(administratorFile, 'utf8'))
console.log(`Administrator: ${name}   password: ${password}`)
