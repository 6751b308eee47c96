/** The options of the HTTP API. Each is declared once, in one of the tables named here. */
import type { OptionValues } from '@sectional/core/options'
import { admissionDeclarations } from './admission-options.ts'
import { authenticationDeclarations } from './authentication-options.ts'
import { documentDeclarations } from './document-options.ts'
import { requestDeclarations } from './request-options.ts'
import { serverDeclarations } from './server-options.ts'

export const httpDeclarations = {
  ...serverDeclarations,
  ...documentDeclarations,
  ...requestDeclarations,
  ...authenticationDeclarations,
  ...admissionDeclarations,
}

/**
 * Their parsed values. A `live` option's property changes while the node runs, so it is to be read for each request;
 * the others never change.
 */
export type HttpOptions = OptionValues<typeof httpDeclarations>
