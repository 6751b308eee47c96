import { isDatabaseName, nameSegmentLengthMax } from '@sectional/core'
import { flag, integer, option, type OptionType } from '@sectional/core/options'
import { shardsPerDatabaseMax } from '../control/database-options.ts'

/** The beginning of a database's name, which hexadecimal digits follow. */
const namePrefix: OptionType<string> = {
  kind: 'beginning of a database name',
  parse: given => {
    if (given.length >= nameSegmentLengthMax) {
      throw new Error(`the prefix has ${given.length} characters, at most ${nameSegmentLengthMax - 1} are allowed`)
    }
    if (!isDatabaseName(`${given}0`)) {
      throw new Error('only a letter from a to z, followed by lowercase letters, digits and the characters _$()+/- is '
        + 'allowed')
    }
    return given
  },
  format: value => value,
}

export const userDatabasesDeclarations = {
  createsUserDatabases: option('couch_peruser/enable', flag, {
    default: false,
    effect: 'live',
    clusterWide: true,
    help: 'Create a database for every user in _users, to which only this user and server administrators have access.',
  }),

  deletesUserDatabases: option('couch_peruser/delete_dbs', flag, {
    default: false,
    effect: 'live',
    clusterWide: true,
    help: 'Delete the database of a user when the user is deleted. While this is false, the user is removed from the '
      + 'names of its _security instead.',
  }),

  userDatabaseShards: option('couch_peruser/q', integer({ min: 1, max: shardsPerDatabaseMax }), {
    default: 1,
    effect: 'live',
    clusterWide: true,
    help: 'Number of shards of the databases that are created for users.',
  }),

  userDatabasePrefix: option('couch_peruser/database_prefix', namePrefix, {
    default: 'userdb-',
    effect: 'live',
    clusterWide: true,
    help: 'The name of the database of a user is this prefix, followed by the name of the user in UTF-8 and '
      + 'hexadecimal. After a change all users get databases of the new names, and the others are kept.',
  }),
}

/** Limits of the work on the databases of users. Times are in milliseconds. */
export interface UserDatabasesOptions {
  /** Interval at which a node checks whether it has to do the work. */
  readonly watchMs: number
  /** Time from the first change that is not part of the checkpoint to the next checkpoint. */
  readonly checkpointMs: number
  /** Number of users on whose databases a node works at the same time. */
  readonly parallelMax: number
  /** Time until the next attempt after a failure. It doubles with each failure. */
  readonly retryMinMs: number
  readonly retryMaxMs: number
}

export const defaultUserDatabasesOptions: UserDatabasesOptions = Object.freeze({
  watchMs: 1_000,
  checkpointMs: 2_000,
  parallelMax: 4,
  retryMinMs: 500,
  retryMaxMs: 30_000,
})
