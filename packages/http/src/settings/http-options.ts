/** All options of the HTTP API. Each is declared once, in one of the tables that are imported here. */
import type { OptionValues } from '@sectional/core/options'
import { admissionDeclarations } from './admission-options.ts'
import { auditDeclarations } from '../audit/audit-options.ts'
import { authenticationDeclarations } from './authentication-options.ts'
import { documentDeclarations } from './document-options.ts'
import { findDeclarations } from './find-options.ts'
import { handlerDeclarations } from './handler-options.ts'
import { lockoutDeclarations } from './lockout-options.ts'
import { proxyDeclarations } from './proxy-options.ts'
import { requestDeclarations } from './request-options.ts'
import { rewriteDeclarations } from './rewrite-options.ts'
import { serverDeclarations } from './server-options.ts'
import { tokenDeclarations } from './token-options.ts'
import { viewDeclarations } from './view-options.ts'

export const httpDeclarations = {
  ...serverDeclarations,
  ...documentDeclarations,
  ...requestDeclarations,
  ...rewriteDeclarations,
  ...viewDeclarations,
  ...findDeclarations,
  ...authenticationDeclarations,
  ...handlerDeclarations,
  ...lockoutDeclarations,
  ...proxyDeclarations,
  ...tokenDeclarations,
  ...admissionDeclarations,
  ...auditDeclarations,
}

/**
 * The parsed values. The property of a `live` option changes while the node runs, so read it for each request. The
 * others never change.
 */
export type HttpOptions = OptionValues<typeof httpDeclarations>
