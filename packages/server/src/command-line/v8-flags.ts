import { setFlagsFromString } from 'node:v8'

/**
 * Sets the flags of V8 with which a node runs, for the whole process. Call it before the node is created.
 *
 * Allocation-site pretenuring is off (docs/decisions/0014-no-pretenuring.md): V8 counts, for each place of the program
 * that creates arrays and objects, how many of them survive a collection of the young generation, and may then allocate
 * all later ones of that place in the old generation. The pages of rows of a list are such arrays. In the old
 * generation, a page that is no longer used keeps its rows alive until the next collection of the whole heap, and each
 * collection of the young generation copies them.
 */
export function setV8Flags(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
}
