#!/usr/bin/env node
/** The `sectional` command. The command line is the only part of the server that uses `process`. */
import { runCommand } from './command-line/commands.ts'

process.exitCode = await runCommand(process.argv.slice(2), process)
