import type { Fault, FaultContext } from './fault.ts'

/** Sets a wall clock forwards or backwards for the rest of the run. */
export function jumpClock({ dice, world }: FaultContext): Fault {
  const node = dice.pick(world.nodes)
  const ms = dice.pick([-3_600_000, -1000, 1000, 60_000, 3_600_000])
  return {
    begin: () => {
      world.say(`${node.host}: clock jumps by ${ms} ms`)
      node.clock.jump(ms)
    },
    end: () => {},
  }
}
