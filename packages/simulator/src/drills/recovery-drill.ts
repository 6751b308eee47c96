import { MemoryLog, MemoryStorage } from '@sectional/runtime'
import type { MemoryDisk } from '@sectional/runtime'
import { ClusterRecovery, majority } from '@sectional/server'
import type { ControlPlaneNode } from '@sectional/server'
import type { Findings } from '../checkers/final-state.ts'
import { deleteAtRest } from './drill.ts'
import type { DrillContext } from './drill.ts'

const rounds = 3
const pauseMs = 200

/**
 * The disks of all nodes are copied when the creation of a database is acknowledged. A recovery of the cluster from the
 * copy of a voter has the database, for a majority of the voters.
 */
export async function recoveryDrill({ dice, others, world }: DrillContext): Promise<Findings> {
  for (let round = 0; round < rounds; round++) {
    const through = world.node(dice.pick(others))
    const path = `/recovered${dice.seed()}`
    let databases = 0
    let copies: readonly { readonly name: string; readonly disk: MemoryDisk }[] = []
    await world.send(through.number, 'PUT', `${path}?q=1&n=1`, undefined, {
      onAnswered: ({ status }) => {
        if (status !== 201) return
        const control = through.inside!.control as ControlPlaneNode
        const voters = control.votingConfiguration()?.voters ?? []
        databases = control.state()!.databases.size
        copies = world.nodes.filter(({ name }) => voters.includes(name))
          .map(({ disk, name }) => ({ name, disk: disk.copy() }))
      },
    })
    const having: string[] = []
    for (const { disk, name } of copies) if (await recoveredDatabases(disk, name) >= databases) having.push(name)
    await deleteAtRest(world, through.number, path)
    if (copies.length > 0 && having.length < majority(copies.length)) {
      return [`when the creation of ${path} was acknowledged, a recovery had it only from `
        + `${having.join(', ') || 'none'} of ${copies.map(({ name }) => name).join(', ')}`]
    }
    await world.sleep(dice.wait(pauseMs))
  }
  return []
}

async function recoveredDatabases(disk: MemoryDisk, node: string): Promise<number> {
  const recovery = await ClusterRecovery.open(new MemoryStorage(disk), node, new MemoryLog())
  await recovery.close()
  return recovery.report.databases
}
