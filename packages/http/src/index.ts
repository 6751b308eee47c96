export type { Configuration, ConfigurationSections } from './configuration.ts'
export type { JsonObject, NodeInformation, Statistic } from './node-information.ts'
export { defaultHttpOptions } from './http-options.ts'
export type { HttpOptions } from './http-options.ts'
