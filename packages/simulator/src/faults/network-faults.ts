import type { Fault, FaultContext } from './fault.ts'

/** Divides the nodes into two groups that cannot reach each other. `heal` ends all partitions at once. */
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

/** Isolates the leader of the metadata log. */
export function isolateLeader(context: FaultContext): Fault | undefined {
  const { world } = context
  const leader = world.nodes.map(node => node.inside?.control.leader())
    .find(name => name !== undefined && name !== null)
  const node = world.nodes.find(each => each.name === leader)
  return node === undefined || world.nodes.length < 2 ? undefined : isolate(context, node.number)
}

/** Blocks one direction between two nodes. */
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

/** Kills all connections between two nodes. */
export function killConnections(context: FaultContext): Fault | undefined {
  const numbers = numbersOf(context)
  if (numbers.length < 2) return undefined
  const [a, b] = context.dice.sample(numbers, 2) as [number, number]
  return { begin: () => context.world.kill(a, b), end: () => {} }
}

/**
 * Kills the connections between two nodes at one end, which dials again. The other end does not notice this for a
 * while, so that node has two links, of which one is broken.
 */
export function lingerConnections(context: FaultContext): Fault | undefined {
  const numbers = numbersOf(context)
  if (numbers.length < 2) return undefined
  const [near, far] = context.dice.sample(numbers, 2) as [number, number]
  const lingerMs = context.dice.pick([100, 2000, 20_000])
  return { begin: () => context.world.sever(near, far, lingerMs), end: () => {} }
}

/**
 * Kills the connections between two nodes while their links are slow, so that both ends dial before they learn of each
 * other's attempt. There are then two links, and frames on one overtake frames on the other.
 */
export function crossDial(context: FaultContext): Fault | undefined {
  const numbers = numbersOf(context)
  if (numbers.length < 2) return undefined
  const [a, b] = context.dice.sample(numbers, 2) as [number, number]
  const ms = context.dice.pick([500, 1500, 4000])
  return healing(context, () => {
    context.world.slow(a, b, ms)
    context.world.slow(b, a, ms)
    context.world.kill(a, b)
  })
}

/** Makes each frame kill its connection with some probability. */
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
