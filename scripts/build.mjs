// Compiles every package to its dist folder (incremental; project references give the order).
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const checkout = fileURLToPath(new URL('..', import.meta.url))

removeOrphans()
const compiler = join(checkout, 'node_modules/typescript/bin/tsc')
const options = ['-b', 'tsconfig.build.json', ...process.argv.slice(2)]
const { status } = spawnSync(process.execPath, [compiler, ...options], { cwd: checkout, stdio: 'inherit' })
process.exit(status ?? 1)

// A dist file whose source is gone would still be imported.
function removeOrphans() {
  for (const name of readdirSync(join(checkout, 'packages'))) {
    const dist = join(checkout, 'packages', name, 'dist')
    if (!existsSync(dist)) continue
    for (const file of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
      const source = join(checkout, 'packages', name, 'src', file.replace(/(\.d\.ts|\.js)$/, '.ts'))
      if (/\.(d\.ts|js)$/.test(file) && !existsSync(source)) rmSync(join(dist, file))
    }
  }
}
