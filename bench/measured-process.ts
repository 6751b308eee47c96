/** Starts and ends the child processes of the benchmark, and reads their counters. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { LoadJob, LoadResult } from './load.ts'

function bench(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url))
}

/** Runs a script to its end and returns its parsed output. */
export async function runScript(file: string, words: readonly string[]): Promise<unknown> {
  const child = spawn(process.execPath, [bench(file), ...words], { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', chunk => { output += String(chunk) })
  const [status] = await once(child, 'close') as [number | null]
  if (status !== 0) throw new Error(`${file} ended with status ${status}`)
  return JSON.parse(output)
}

/** @throws Error when requests failed, because rates that include failures are meaningless */
export async function runLoad(job: LoadJob): Promise<LoadResult> {
  const result = await runScript('load.ts', [JSON.stringify(job)]) as LoadResult
  const failures = Object.entries(result.failures)
  if (failures.length > 0 || result.requests === 0) {
    throw new Error(`${job.kind}: ${result.requests} requests answered, failures: ${JSON.stringify(result.failures)}`)
  }
  return result
}

export interface MeasuredServer { readonly port: number; readonly processId: number }

export interface Running extends MeasuredServer { stop(): Promise<void> }

/** Starts a script that serves HTTP and prints its port. */
export async function startBareProgram(file: string, words: readonly string[]): Promise<Running> {
  const child = spawn(process.execPath, [bench(file), ...words], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(createInterface(child.stdout), 'line') as [string]
  return { port: Number(line), processId: child.pid!, stop: () => end(child) }
}

export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

/** Returns the CPU time that a process has used, in microseconds. The kernel counts in steps of 10 ms (Linux). */
export function cpuUs(processId: number): number {
  const fields = readFileSync(`/proc/${processId}/stat`, 'latin1').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

/** Returns the CPU time that a process and its children have used, those that have ended included, in microseconds. */
export function familyCpuUs(processId: number): number {
  const [, ticks] = statOf(processId)!
  return [...childrenOf(processId)].reduce((total, child) => total + (statOf(child)?.[1] ?? 0), ticks) * 10_000
}

/** A process is idle when it and its children use at most this part of a core for `idleMs`. */
const idlePart = 0.03
const idleMs = 2000
const idleWaitMsMax = 60_000

/** Waits until a process does nothing any more, such as compactions that follow writes; at most for a minute. */
export async function untilIdle(processId: number): Promise<void> {
  const end = performance.now() + idleWaitMsMax
  for (let before = familyCpuUs(processId); performance.now() < end;) {
    await pause(idleMs)
    const now = familyCpuUs(processId)
    if (now - before <= idlePart * idleMs * 1000) return
    before = now
  }
}

/** Returns the largest resident memory that a process had so far, in MiB (Linux). */
export function peakMiB(processId: number): number {
  return statusMiB(processId, 'VmHWM')
}

/** Sets the largest resident memory of a process back to the present one (Linux). */
export function resetPeak(processId: number): void {
  writeFileSync(`/proc/${processId}/clear_refs`, '5')
}

/** Returns the processes that a process has started, as far as they run. */
export function childrenOf(processId: number): readonly number[] {
  return readdirSync('/proc').filter(name => /^\d+$/.test(name)).map(Number)
    .filter(child => statOf(child)?.[0] === processId)
}

/** Returns the parent of a process, and its CPU time in ticks with that of its children that have ended. */
function statOf(processId: number): readonly [parent: number, ticks: number] | undefined {
  try {
    const fields = readFileSync(`/proc/${processId}/stat`, 'latin1').replace(/^.*\) /s, '').split(' ').map(Number)
    return [fields[1]!, fields[11]! + fields[12]! + fields[13]! + fields[14]!]
  } catch {
    return undefined
  }
}

/** Returns the resident memory in MiB (Linux). */
export function residentMiB(processId: number): number {
  return statusMiB(processId, 'VmRSS')
}

function statusMiB(processId: number, name: string): number {
  const line = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${processId}/status`, 'utf8'))
  return Number(line?.[1]) / 1024
}

export function openFiles(processId: number): number {
  return readdirSync(`/proc/${processId}/fd`).length
}
