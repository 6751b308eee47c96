export { DrawnValues } from './drawn-values.ts'
export { drawnControlVerbs, drawnRaftMessages, drawnShardVerbs } from './drawn-messages.ts'
export type { DrawnVerb } from './drawn-messages.ts'
