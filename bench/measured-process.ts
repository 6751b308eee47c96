/** Starts and ends the child processes of the benchmark, and reads their counters. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, readdirSync } from 'node:fs'
import { createInterface } from 'node:readline'
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

/** Returns the resident memory in MiB (Linux). */
export function residentMiB(processId: number): number {
  const line = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${processId}/status`, 'utf8'))
  return Number(line?.[1]) / 1024
}

export function openFiles(processId: number): number {
  return readdirSync(`/proc/${processId}/fd`).length
}
