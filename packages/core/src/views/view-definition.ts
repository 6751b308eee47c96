/** The definitions of the indexes that the views of a design document need. */
import type { IndexDefinition } from '../contracts/index-replica.ts'
import { ApiError } from '../errors.ts'
import { isJsonObject, type JsonObject } from '../json/json-text.ts'
import { checkReduceName } from '../reduces/built-in-reduces.ts'

/** What the definition of a view depends on beside its design document. */
export interface IndexedDatabase { readonly partitioned: boolean }

/** The only language of views whose functions can be run. */
const javascript = 'javascript'
/** The member of `views` that contains modules for the map functions. */
const libraryName = 'lib'

/**
 * Returns the definition of the index of one view. Views with equal functions and options have equal definitions,
 * whatever their names and the rest of their design documents are. The options have members only where they differ from
 * the default:
 * - `collation: 'raw'`, which a view or its design document sets;
 * - `include_design: true` and `local_seq: true`;
 * - `partitioned: true`: the rows are ordered by partition;
 * - `lib`: JSON text of the modules in `views.lib`.
 *
 * @param designDocument the members of the design document
 * @throws ApiError `not_found` when there is no such view, or it has no map function; `unknown_query_language`;
 * `invalid_design_doc` when it names a built-in reduce function that does not exist
 */
export function viewDefinition(
  designDocument: JsonObject, viewName: string, database: IndexedDatabase,
): IndexDefinition {
  const views = objectOf(designDocument['views'])
  const view = viewName === libraryName || !Object.hasOwn(views, viewName) ? {} : objectOf(views[viewName])
  const { map, reduce } = view
  if (typeof map !== 'string') throw new ApiError('not_found', 'missing_named_view')
  const { language = javascript } = designDocument
  if (language !== javascript) throw new ApiError('unknown_query_language', String(language))
  if (typeof reduce === 'string') checkReduceName(reduce)
  return {
    kind: javascript, map, reduce: typeof reduce === 'string' ? reduce : null,
    options: optionsOf(designDocument, view, database),
  }
}

/**
 * Returns the definitions of all views of a design document, by the names of the views. Views for which
 * `viewDefinition` throws are left out.
 */
export function viewDefinitions(
  designDocument: JsonObject, database: IndexedDatabase,
): ReadonlyMap<string, IndexDefinition> {
  const definitions = new Map<string, IndexDefinition>()
  for (const name of Object.keys(objectOf(designDocument['views']))) {
    try {
      definitions.set(name, viewDefinition(designDocument, name, database))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
    }
  }
  return definitions
}

function optionsOf(
  designDocument: JsonObject, view: JsonObject, database: IndexedDatabase,
): IndexDefinition['options'] {
  const options = objectOf(designDocument['options'])
  const lib = objectOf(designDocument['views'])[libraryName]
  const isRaw = options['collation'] === 'raw' || objectOf(view['options'])['collation'] === 'raw'
  return {
    ...(isRaw && { collation: 'raw' }),
    ...(options['include_design'] === true && { include_design: true }),
    ...(options['local_seq'] === true && { local_seq: true }),
    ...(database.partitioned && options['partitioned'] !== false && { partitioned: true }),
    ...(lib !== undefined && { lib: JSON.stringify(lib) }),
  }
}

function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {}
}
