/** Rows of the benchmark's tables. Sectional and a bare program are measured in turns within one run. */
import { cpuUs, residentMiB, type MeasuredServer } from './measured-process.ts'

/**
 * One measurement: items per second, CPU time per item, and the resident memory of the measured processes afterwards.
 */
export interface Measured { readonly perSecond: number; readonly cpuUs: number; readonly residentMiB?: number }

export interface Row {
  readonly what: string
  readonly sectional: string
  readonly bare: string
  readonly ratio: string
  readonly target: string
  readonly cpu: string
  readonly memory: string
}

/** Measures for about this many seconds. */
export type Measurement = (seconds: number) => Promise<Measured>

export interface Comparison {
  readonly what: string
  readonly target: string
  /** Unit of the rates: `/s` or ` MB/s`. */
  readonly unit?: string
  readonly sectional: Measurement
  readonly bare: Measurement
}

const warmUpSeconds = 1.5

/** Runs the comparisons one after the other. */
export class Bench {
  readonly seconds: number
  readonly rounds: number
  readonly #only: string

  /** @param only text that the name of a comparison must contain */
  constructor(seconds: number, rounds: number, only = '') {
    this.seconds = seconds
    this.rounds = rounds
    this.#only = only
  }

  /** Reports the median of the rounds' ratios. Returns no row when the comparison is not selected. */
  async compare({ what, target, unit = '/s', sectional, bare }: Comparison): Promise<Row[]> {
    if (!what.includes(this.#only)) return []
    await bare(warmUpSeconds)
    await sectional(warmUpSeconds)
    const pairs: { readonly bare: Measured; readonly sectional: Measured }[] = []
    for (let round = 0; round < this.rounds; round++) {
      pairs.push({ bare: await bare(this.seconds), sectional: await sectional(this.seconds) })
    }
    const row: Row = {
      what, target,
      sectional: `${Math.round(median(pairs.map(pair => pair.sectional.perSecond)))}${unit}`,
      bare: `${Math.round(median(pairs.map(pair => pair.bare.perSecond)))}${unit}`,
      ratio: median(pairs.map(pair => pair.sectional.perSecond / pair.bare.perSecond)).toFixed(2),
      cpu: `${cpuText(pairs.map(pair => pair.sectional.cpuUs))} / ${cpuText(pairs.map(pair => pair.bare.cpuUs))} us`,
      memory: `${memoryText(pairs.map(pair => pair.sectional))} / ${memoryText(pairs.map(pair => pair.bare))}`,
    }
    const ratio = `ratio ${row.ratio} ${row.target}`
    console.log(`${row.what}: ${row.sectional}, bare ${row.bare}, ${ratio}, CPU ${row.cpu}, MiB ${row.memory}`)
    return [row]
  }
}

/** Runs `work`, and returns its rate and its cost to the processes. */
export async function measure(
  servers: readonly MeasuredServer[], work: () => Promise<{ readonly count: number; readonly seconds: number }>,
): Promise<Measured> {
  const before = cpuOf(servers)
  const { count, seconds } = await work()
  return {
    perSecond: count / seconds, cpuUs: (cpuOf(servers) - before) / count,
    residentMiB: Math.max(...servers.map(server => residentMiB(server.processId))),
  }
}

function cpuOf(servers: readonly MeasuredServer[]): number {
  return servers.reduce((total, server) => total + cpuUs(server.processId), 0)
}

function cpuText(values: readonly number[]): string {
  const value = median(values)
  return value < 10 ? value.toFixed(1) : value.toFixed(0)
}

function memoryText(measured: readonly Measured[]): string {
  const values = measured.flatMap(({ residentMiB: value }) => value === undefined ? [] : [value])
  return values.length === 0 ? '-' : Math.max(...values).toFixed(0)
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!
}

export function table(rows: readonly Row[]): string[] {
  return [
    '| What | Sectional | Bare | Ratio | Target | CPU each | MiB resident |',
    '|---|---|---|---|---|---|---|',
    ...rows.map(({ what, sectional, bare, ratio, target, cpu, memory }) =>
      `| ${what} | ${sectional} | ${bare} | **${ratio}** | ${target} | ${cpu} | ${memory} |`),
  ]
}
