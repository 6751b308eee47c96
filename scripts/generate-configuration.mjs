// Writes packages/server/default.ini and the option tables of docs/configuration.md from the declarations.
// Run with: node --conditions=sectional-source scripts/generate-configuration.mjs
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { renderDefaultIni, renderOptionTables } from '../packages/server/src/configuration/default-ini.ts'

const checkout = fileURLToPath(new URL('..', import.meta.url))
writeFileSync(`${checkout}packages/server/default.ini`, renderDefaultIni())

const page = `${checkout}docs/configuration.md`
const marker = '<!-- generated below this line -->\n'
const head = existsSync(page) ? readFileSync(page, 'utf8').split(marker)[0] : '# Configuration\n\n'
writeFileSync(page, `${head}${marker}\n${renderOptionTables()}`)
