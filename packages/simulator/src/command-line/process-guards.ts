import type { World } from '../world/world.ts'

/** Disables what would make a run differ from its replay, and assigns exceptions to the run in which they occur. */
export class ProcessGuards {
  #world: World | undefined

  install(): void {
    const thief = (name: string) => (): never => {
      throw new Error(`${name} is used in a simulation: take it from the Runtime`)
    }
    Math.random = thief('Math.random')
    globalThis.setInterval = thief('setInterval') as unknown as typeof setInterval
    const caught = (what: string) => (error: unknown): void => {
      const text = error instanceof Error ? error.stack ?? error.message : String(error)
      if (this.#world === undefined) throw error
      this.#world.fail('crash', what, text, error)
    }
    process.on('unhandledRejection', caught('unhandled-rejection'))
    process.on('uncaughtException', caught('uncaught-exception'))
  }

  watch(world: World | undefined): void {
    this.#world = world
  }
}
