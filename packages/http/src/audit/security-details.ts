import { isJsonObject } from '@sectional/core'
import type { AuditDetails } from './audit.ts'

/** Returns the details of the event `security_changed`. @param security an object whose shape was checked */
export function securityDetails(database: string, security: Readonly<Record<string, unknown>>): AuditDetails {
  const { admins, members = security['readers'] } = security
  return {
    database,
    admin_names: texts(admins, 'names'), admin_roles: texts(admins, 'roles'),
    member_names: texts(members, 'names'), member_roles: texts(members, 'roles'),
  }
}

function texts(people: unknown, list: 'names' | 'roles'): readonly string[] {
  return isJsonObject(people) ? people[list] as string[] | undefined ?? [] : []
}
