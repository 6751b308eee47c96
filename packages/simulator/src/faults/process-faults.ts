import type { SimulatedNode } from '../world/simulated-node.ts'
import type { Fault, FaultContext } from './fault.ts'

/** The process dies, and is started again when the fault ends. */
export function crash(context: FaultContext): Fault | undefined {
  return pickedUp(context, node => ({
    begin: () => {
      context.supervisor.keepDown(node)
      context.world.crash(node.number)
    },
    end: () => context.supervisor.up(node),
  }))
}

/** Stopped in good order, and started again. */
export function stop(context: FaultContext): Fault | undefined {
  return pickedUp(context, node => {
    let stopped: Promise<void> = Promise.resolve()
    return {
      begin: () => {
        context.supervisor.keepDown(node)
        stopped = context.world.stop(node.number)
      },
      end: () => { void stopped.then(() => context.supervisor.up(node)) },
    }
  })
}

/** SIGSTOP and SIGCONT. */
export function pause(context: FaultContext): Fault | undefined {
  return pickedUp(context, node => ({
    begin: () => context.world.pause(node.number),
    end: () => context.world.continue(node.number),
  }))
}

/** The power of the whole site. */
export function crashAll({ supervisor, world }: FaultContext): Fault | undefined {
  const nodes = world.nodes.filter(node => node.running)
  return {
    begin: () => {
      for (const node of nodes) {
        supervisor.keepDown(node)
        if (node.running) world.crash(node.number)
      }
    },
    end: () => { for (const node of nodes) supervisor.up(node) },
  }
}

function pickedUp({ dice, world }: FaultContext, make: (node: SimulatedNode) => Fault): Fault | undefined {
  const candidates = world.nodes.filter(node => node.running && !node.paused && !node.stopping)
  return candidates.length === 0 ? undefined : make(dice.pick(candidates))
}
