#!/usr/bin/env node
/** The `sectional` command. The command line is the only part of the server that uses `process`. */
import { runCommand } from './command-line/commands.ts'

// Nothing that a command writes is for other accounts of the machine, whatever library creates the file.
process.umask(0o077)
process.exitCode = await runCommand(process.argv.slice(2), process)
