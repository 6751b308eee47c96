// One-shot setup of docker-compose.yml. On the first run it makes the cluster secret and the administrator's password,
// and keeps the secret and a hash of the password in the volume that the nodes read as local.d. A password that it made
// itself is kept in a volume of its own, which no node mounts, and is never printed unless somebody asks for it: the
// log of a container is stored by Docker.
import { pbkdf2Sync, randomBytes } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const { env, argv } = process
const [, , command, settingsFolder = '/etc/sectional/local.d', privateFolder = '/var/lib/sectional-setup'] = argv
const settingsFile = join(settingsFolder, '10-cluster.ini')
const passwordFile = join(privateFolder, 'administrator.txt')
/** Earlier versions kept the password here. */
const earlierFile = join(settingsFolder, 'administrator.txt')
const iterations = 600_000

const commands = { run, 'show-password': showPassword, 'forget-password': forgetPassword }
try {
  if (!Object.hasOwn(commands, command)) throw new Error(`only ${Object.keys(commands).join(', ')} are allowed`)
  commands[command]()
} catch (error) {
  console.error(`setup ${command ?? ''}: ${error.message}`)
  process.exitCode = 1
}

function run() {
  if (existsSync(earlierFile)) {
    if (!existsSync(passwordFile)) writePrivate(passwordFile, readFileSync(earlierFile, 'utf8'))
    rmSync(earlierFile)
  }
  if (!existsSync(settingsFile)) makeSettings()
  console.log(existsSync(passwordFile)
    ? 'The administrator is admin. To read the password: docker compose run --rm setup show-password'
    : 'The administrator is admin, with the password that was given at the first start, or set since.')
}

function makeSettings() {
  const given = givenPassword()
  const password = given ?? randomBytes(15).toString('base64url')
  const salt = randomBytes(16).toString('hex')
  const key = pbkdf2Sync(password, salt, iterations, 32, 'sha256').toString('hex')
  if (given === null) writePrivate(passwordFile, `admin:${password}\n`)
  const secret = randomBytes(32).toString('hex')
  writePrivate(settingsFile, `[cluster]\nsecret = ${secret}\n\n[admins]\n`
    + `admin = -pbkdf2:sha256-${key},${salt},${iterations}\n`)
}

/** Returns null when no password is given. */
function givenPassword() {
  const path = env.SECTIONAL_ADMIN_PASSWORD_FILE
  if (!path) return env.SECTIONAL_ADMIN_PASSWORD || null
  const [password] = readFileSync(path, 'utf8').split(/\r?\n/)
  if (password === '') throw new Error(`SECTIONAL_ADMIN_PASSWORD_FILE: the first line of ${path} is empty`)
  return password
}

function showPassword() {
  if (!existsSync(passwordFile)) throw new Error('the password was given at the first start, or was forgotten')
  console.log(readFileSync(passwordFile, 'utf8').trimEnd())
}

function forgetPassword() {
  rmSync(passwordFile, { force: true })
}

function writePrivate(file, text) {
  rmSync(`${file}.new`, { force: true })
  writeFileSync(`${file}.new`, text, { mode: 0o600, flag: 'wx' })
  renameSync(`${file}.new`, file)
}
