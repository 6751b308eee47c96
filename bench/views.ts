/**
 * Measures views of one node: `node bench/views.ts [--quick]`, after a build of the checkout. It takes less than ten
 * minutes, and with `--quick` about two, with a tenth of the documents. Prints tables with ratios to bare programs of
 * the same run. `--part builds` and `--part queries` measure one half, `--query TEXT` only the queries whose names
 * contain the text, `--rows 10000,100000` other numbers of rows, and `--q` other numbers of shards than the default.
 */
import { parseArgs } from 'node:util'
import { fullMeasurement, measureViews, quickMeasurement } from './view-report.ts'

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false }, part: { type: 'string' }, query: { type: 'string' },
    rows: { type: 'string' }, q: { type: 'string' }, seconds: { type: 'string' }, folder: { type: 'string' },
    port: { type: 'string' },
  },
})
const chosen = flags.quick ? quickMeasurement : fullMeasurement
const lines = await measureViews({
  ...chosen, folder: flags.folder, part: flags.part, query: flags.query,
  ...(flags.rows !== undefined && { sizes: flags.rows.split(',').map(Number) }),
  ...(flags.q !== undefined && { shards: Number(flags.q) }),
  ...(flags.seconds !== undefined && { seconds: Number(flags.seconds) }),
  ...(flags.port !== undefined && { port: Number(flags.port) }),
})
console.log(`\n${lines.join('\n')}`)
