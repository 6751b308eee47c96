import type { Fault, FaultContext } from './fault.ts'

/** Two groups that do not reach each other. Partitions end together: `heal` is for all. */
export function partition(context: FaultContext): Fault | undefined {
  const { dice, world } = context
  const numbers = numbersOf(context)
  if (numbers.length < 2) return undefined
  const group = dice.sample(numbers, dice.integer(1, numbers.length - 1))
  return healing(context, () => world.partition(group, numbers.filter(number => !group.includes(number))))
}

export function isolateOne(context: FaultContext): Fault | undefined {
  const numbers = numbersOf(context)
  return numbers.length < 2 ? undefined : isolate(context, context.dice.pick(numbers))
}

/** The leader of the metadata log is cut off. */
export function isolateLeader(context: FaultContext): Fault | undefined {
  const { world } = context
  const leader = world.nodes.map(node => node.inside?.control.leader()).find(name => name !== undefined && name !== null)
  const node = world.nodes.find(each => each.name === leader)
  return node === undefined || world.nodes.length < 2 ? undefined : isolate(context, node.number)
}

/** One node no longer reaches another, which still reaches it. */
export function cutOneWay(context: FaultContext): Fault | undefined {
  const { dice, world } = context
  const numbers = numbersOf(context)
  if (numbers.length < 2) return undefined
  const [from, to] = dice.sample(numbers, 2) as [number, number]
  return healing(context, () => world.cut(from, to))
}

export function slowLink(context: FaultContext): Fault | undefined {
  const { dice, world } = context
  const numbers = numbersOf(context)
  if (numbers.length < 2) return undefined
  const [from, to] = dice.sample(numbers, 2) as [number, number]
  const ms = dice.pick([50, 300, 2000, 10_000])
  return healing(context, () => {
    world.slow(from, to, ms)
    if (dice.chance(0.5)) world.slow(to, from, ms)
  })
}

/** Every connection between two nodes dies at once. */
export function killConnections(context: FaultContext): Fault | undefined {
  const numbers = numbersOf(context)
  if (numbers.length < 2) return undefined
  const [a, b] = context.dice.sample(numbers, 2) as [number, number]
  return { begin: () => context.world.kill(a, b), end: () => {} }
}

/** Each frame may kill its connection. */
export function dropConnections(context: FaultContext): Fault | undefined {
  const chance = context.dice.pick([0.0005, 0.005, 0.03])
  return healing(context, () => context.world.dropConnections(chance))
}

function isolate(context: FaultContext, number: number): Fault {
  return healing(context, () => context.world.partition([number], numbersOf(context).filter(each => each !== number)))
}

function healing({ world }: FaultContext, begin: () => void): Fault {
  return { begin, end: () => world.heal() }
}

function numbersOf({ world }: FaultContext): number[] {
  return world.nodes.map(node => node.number)
}
