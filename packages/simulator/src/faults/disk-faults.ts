import type { SimulatedNode } from '../world/simulated-node.ts'
import type { Fault, FaultContext } from './fault.ts'
import type { DiskTrouble } from './faulty-disks.ts'

export function slowDisk(context: FaultContext): Fault {
  const slowMs = context.dice.pick([20, 200, 3000, 20_000])
  return troubled(context, `syncs take up to ${slowMs} ms more`, trouble => { trouble.slowMs = slowMs }, trouble => {
    trouble.slowMs = 0
  })
}

export function fullDisk(context: FaultContext): Fault {
  return troubled(context, 'disk full', trouble => { trouble.full = true }, trouble => { trouble.full = false })
}

export function failingDisk(context: FaultContext): Fault {
  const share = context.dice.pick([0.02, 0.2, 1])
  return troubled(context, `${share} of writes fail`, trouble => { trouble.failingWrites = share }, trouble => {
    trouble.failingWrites = 0
  })
}

/** Makes reads fail with an I/O error or because a checksum does not match. */
export function failingReads(context: FaultContext): Fault {
  const share = context.dice.pick([0.002, 0.05])
  const code = context.dice.pick(['io', 'corrupt'] as const)
  return troubled(context, `${share} of reads fail with ${code}`, trouble => {
    trouble.failingReads = share
    trouble.failingReadCode = code
  }, trouble => { trouble.failingReads = 0 })
}

function troubled(
  { dice, disks, world }: FaultContext, what: string, begin: (trouble: DiskTrouble) => void,
  end: (trouble: DiskTrouble) => void,
): Fault {
  const node: SimulatedNode = dice.pick(world.nodes)
  return {
    begin: () => {
      world.say(`${node.host}: ${what}`)
      begin(disks.of(node))
    },
    end: () => {
      world.say(`${node.host}: no longer ${what}`)
      end(disks.of(node))
    },
  }
}
