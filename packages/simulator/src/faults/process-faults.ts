import type { ControlPlaneNode } from '@sectional/server'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { Fault, FaultContext } from './fault.ts'

/** With fewer voters the cluster could not lose one. */
const votersMin = 3
/** Milliseconds between the restarts of two nodes. */
const restartPauseMs = 2000

/** Crashes a process. It is started again when the fault ends. */
export function crash(context: FaultContext): Fault | undefined {
  return pickedUp(context, node => ({
    begin: () => {
      context.supervisor.keepDown(node)
      context.world.crashSomehow(node.number)
    },
    end: () => context.supervisor.up(node),
  }))
}

/** Stops a process in good order. It is started again when the fault ends. */
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

/** Stops one node after the other in good order, and starts each again at once, as an update of the software does. */
export function restartAll({ supervisor, world }: FaultContext): Fault | undefined {
  let over = false
  const restart = async (): Promise<void> => {
    for (const node of world.nodes) {
      if (over || !node.running || node.paused || node.stopping) continue
      supervisor.keepDown(node)
      await world.stop(node.number)
      supervisor.up(node)
      await world.sleep(restartPauseMs)
    }
  }
  return { begin: () => { void restart() }, end: () => { over = true } }
}

/** Pauses a process, as SIGSTOP and SIGCONT do. */
export function pause(context: FaultContext): Fault | undefined {
  return pickedUp(context, node => ({
    begin: () => context.world.pause(node.number),
    end: () => context.world.continue(node.number),
  }))
}

/** Crashes all processes, like a power failure of the whole site. */
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

/**
 * Gives a machine an empty disk, once in a run, and only where the cluster survives it: with three voters, three
 * replicas of every shard, and clients that wait for two disks.
 */
export function loseDisk(context: FaultContext): Fault | undefined {
  const { disks, world } = context
  return offWithItsDisk(context, node => {
    world.say(`node ${node.number} loses its disk`)
    disks.lose(node)
  })
}

/** Crashes a node and damages or empties its disk while it is down. The cluster must survive the loss of that disk. */
export function offWithItsDisk(context: FaultContext, befall: (node: SimulatedNode) => void): Fault | undefined {
  const { supervisor, world } = context
  if (!survivesLoss(context)) return undefined
  return pickedUp(context, node => {
    if (isOnlySeed(context, node)) return undefined
    const control = node.inside?.control as ControlPlaneNode | undefined
    if ((control?.votingConfiguration()?.voters.length ?? 0) < votersMin) return undefined
    return {
      begin: () => {
        supervisor.keepDown(node)
        world.crash(node.number)
        befall(node)
      },
      end: () => supervisor.up(node),
    }
  })
}

/**
 * Returns whether all seed lists name this node only. With an empty disk it forms a second cluster if it reaches no
 * other node (docs/reliability.md, "One seed list forms one cluster").
 */
export function isOnlySeed({ options }: FaultContext, node: SimulatedNode): boolean {
  return options.seeds === 1 && node.number === 1
}

function survivesLoss({ disks, options, supervisor }: FaultContext): boolean {
  return options.founders >= 3 && options.w !== 1 && options.databases.every(({ n }) => n >= 3) && disks.lost === 0
    && supervisor.leaving === 0
}

function pickedUp({ dice, world }: FaultContext, make: (node: SimulatedNode) => Fault | undefined): Fault | undefined {
  const candidates = world.nodes.filter(node => node.running && !node.paused && !node.stopping)
  return candidates.length === 0 ? undefined : make(dice.pick(candidates))
}
