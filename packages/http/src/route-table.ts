/** Every path of the API (docs/reference/README.md#endpoints) with its methods, its access rule and its handlers. */
import { ApiError } from '@sectional/core'
import { dispatch, type Routes } from './pipeline/dispatch.ts'
import type { Access, Handler, Resource } from './pipeline/resource.ts'
import { Router } from './pipeline/router.ts'
import { getActiveTasks } from './routes/active-tasks.ts'
import { postAggregate, postAggregateInPartition } from './routes/aggregate.ts'
import { deleteAttachment, getAttachment, putAttachment } from './routes/attachment.ts'
import { postBulkDocuments } from './routes/bulk-docs.ts'
import { postBulkGet } from './routes/bulk-get.ts'
import { getChanges, refuseChangesMethod } from './routes/changes.ts'
import { getClusterSetup, postClusterSetup } from './routes/cluster-setup.ts'
import {
  getAutoPurge, getPurgedInfosLimit, getRevisionsLimit, getSecurity, putAutoPurge, putPurgedInfosLimit,
  putRevisionsLimit, putSecurity,
} from './routes/database-options.ts'
import { getDatabaseUpdates } from './routes/database-updates.ts'
import { deleteDatabase, getDatabase, putDatabase } from './routes/database.ts'
import { getAllDatabases, getDatabasesInformation, postDatabasesInformation } from './routes/databases.ts'
import {
  listAllDocuments, listDesignDocuments, listPartition, queryPartition, queryAllDocuments, queryDesignDocuments,
} from './routes/document-list.ts'
import { postDocumentForm } from './routes/document-form.ts'
import { postExplain, postExplainInPartition, postFind, postFindInPartition } from './routes/find.ts'
import { getDocument } from './routes/document-open.ts'
import { copyDocument, copyLocalDocument, deleteDocument, postDocument, putDocument } from './routes/document-update.ts'
import { getList, getListOfOther, refuseListPath, viewMethods } from './routes/list.ts'
import { listLocalDocuments, queryLocalDocuments } from './routes/local-document-list.ts'
import {
  deleteLocalDocument, getLocalDocument, putLocalDocument, refuseLocalAttachment, refuseLocalName,
} from './routes/local-document.ts'
import {
  deleteConfigurationValue, getConfiguration, getConfigurationSection, getConfigurationValue, putConfigurationValue,
  reloadConfiguration,
} from './routes/node-configuration.ts'
import {
  getNode, getPrometheus, getReplicas, getStatistics, getSystem, getVersions, refuseIncompletePath,
} from './routes/node.ts'
import { missingFeature } from './routes/not-implemented.ts'
import { createPartitionPath, refusePartitionedPath } from './routes/partition-path.ts'
import { getPurgedInfos, postPurge } from './routes/purge.ts'
import { postMissingRevisions, postRevisionsDiff } from './routes/revisions-diff.ts'
import { getGreeting, getIcon, getMembership, getUp, getUuids } from './routes/server.ts'
import { deleteIndex, deleteIndexes, getIndexes, postIndex } from './routes/query-index.ts'
import { createRewrite } from './routes/rewrite.ts'
import { deleteSession, getSession, postSession } from './routes/session.ts'
import { getShow, refuseShowPath } from './routes/show.ts'
import { getShardOfDocument, getShards, postEnsureFullCommit, postSynchronizeShards } from './routes/shards.ts'
import {
  deleteTimeSequence, getPartition, getTimeSequence, postCleanup, postCompact, postCompactDesign,
} from './routes/upkeep.ts'
import { postUpdate, refuseUpdateMethod, refuseUpdatePath } from './routes/update.ts'
import { getDesignInfo, postViewCleanup } from './routes/view-upkeep.ts'
import { listPartitionView, listView, queryPartitionView, queryView } from './routes/view.ts'

function resource(name: string, access: Access, allow: string, methods: Readonly<Record<string, Handler>>): Resource {
  return { name, access, allow, methods }
}

export function createRoutes(): Routes {
  const routes: Routes = {
    server: router(serverResources()),
    database: router({
      ...databaseResources(), ...dispatchingResources((request, services) => dispatch(routes, request, services)),
    }),
    databaseRoot: databaseRoot(),
  }
  return routes
}

/** Resources that are answered like other ones. @param again dispatches the changed request */
function dispatchingResources(again: Handler): Readonly<Record<string, Resource>> {
  const rewrite = resource('rewrite', 'member', '*', { '*': createRewrite(again) })
  const inPartition = resource('partition', 'member', '*', { '*': createPartitionPath(again) })
  const shared = ['_index', ...['_show', '_list', '_update', '_rewrite'].map(name => `_design/{name}/${name}`)]
  return {
    '/_design/{name}/_rewrite': rewrite,
    '/_design/{name}/_rewrite/{path...}': rewrite,
    '/_partition/{partition}/_design/{name}/_info': inPartition,
    ...Object.fromEntries(shared.flatMap(path => ['', '/{path...}'].map(rest => (
      [`/_partition/{partition}/${path}${rest}`, inPartition]
    )))),
  }
}

function router(resources: Readonly<Record<string, Resource>>): Router<Resource> {
  const tree = new Router<Resource>()
  for (const [pattern, entry] of Object.entries(resources)) tree.add(pattern, entry)
  return tree
}

/** Resources of the server, by path. */
export function serverResources(): Readonly<Record<string, Resource>> {
  return {
    '/': resource('root', 'public', 'GET,HEAD', { GET: getGreeting }),
    '/favicon.ico': resource('favicon', 'public', 'GET,HEAD', { GET: getIcon }),
    '/_up': resource('up', 'public', 'GET,HEAD', { GET: getUp }),
    '/_uuids': resource('uuids', 'public', 'GET', { GET: getUuids }),
    '/_session': resource('session', 'public', 'GET,HEAD,POST,DELETE', {
      GET: getSession, POST: postSession, DELETE: deleteSession,
    }),
    '/_all_dbs': resource('all-databases', 'database-list', 'GET,HEAD', { GET: getAllDatabases }),
    '/_dbs_info': resource('databases-info', 'database-list', 'GET,HEAD,POST', {
      GET: getDatabasesInformation, POST: postDatabasesInformation,
    }),
    '/_membership': resource('membership', 'server-admin', 'GET', { GET: getMembership }),
    '/_active_tasks': resource('active-tasks', 'server-admin', 'GET,HEAD', { GET: getActiveTasks }),
    '/_cluster_setup': resource('cluster-setup', 'server-admin', 'GET,POST', {
      GET: getClusterSetup, POST: postClusterSetup,
    }),
    '/_replicate': missingFeature('replicate', 'authenticated', 'POST', 'Replication is'),
    '/_scheduler/jobs': missingFeature('scheduler', 'server-admin', 'GET,HEAD', 'Replication is'),
    '/_scheduler/jobs/{id}': missingFeature('scheduler', 'server-admin', 'GET,HEAD', 'Replication is'),
    '/_scheduler/docs': missingFeature('scheduler', 'server-admin', 'GET,HEAD', 'Replication is'),
    '/_scheduler/docs/{path...}': missingFeature('scheduler', 'server-admin', 'GET,HEAD', 'Replication is'),
    '/_db_updates': resource('db-updates', 'server-admin', 'GET', { GET: getDatabaseUpdates }),
    '/_reload_query_servers': missingFeature('reload-query-servers', 'server-admin', 'POST', 'Query servers are'),
    '/_search_analyze': missingFeature('search-analyze', 'server-admin', 'GET,POST', 'Text search is'),
    '/_nouveau_analyze': missingFeature('nouveau-analyze', 'server-admin', 'GET,POST', 'Text search is'),
    '/_reshard': missingFeature('reshard', 'server-admin', 'GET,HEAD', 'Resharding is'),
    '/_reshard/state': missingFeature('reshard', 'server-admin', 'GET,HEAD,PUT', 'Resharding is'),
    '/_reshard/jobs': missingFeature('reshard', 'server-admin', 'GET,HEAD,POST', 'Resharding is'),
    '/_reshard/jobs/{id}': missingFeature('reshard', 'server-admin', 'GET,HEAD,DELETE', 'Resharding is'),
    '/_reshard/jobs/{id}/state': missingFeature('reshard', 'server-admin', 'GET,HEAD,PUT', 'Resharding is'),
    ...nodeResources(),
  }
}

function nodeResources(): Readonly<Record<string, Resource>> {
  return {
    '/_node': resource('node', 'server-admin', 'GET', { '*': refuseIncompletePath }),
    '/_node/{node}': resource('node', 'server-admin', 'GET', { GET: getNode }),
    '/_node/{node}/_versions': resource('node-versions', 'server-admin', 'GET', { GET: getVersions }),
    '/_node/{node}/_stats': resource('node-stats', 'metrics', 'GET', { GET: getStatistics }),
    '/_node/{node}/_stats/{path...}': resource('node-stats', 'metrics', 'GET', { GET: getStatistics }),
    '/_node/{node}/_system': resource('node-system', 'metrics', 'GET', { GET: getSystem }),
    '/_node/{node}/_prometheus': resource('node-prometheus', 'metrics', 'GET', { GET: getPrometheus }),
    '/_node/{node}/_replicas/{db}': resource('node-replicas', 'server-admin', 'GET', { GET: getReplicas }),
    '/_node/{node}/_config': resource('node-config', 'server-admin', 'GET', { GET: getConfiguration }),
    '/_node/{node}/_config/_reload': resource('node-config', 'server-admin', 'POST', { POST: reloadConfiguration }),
    '/_node/{node}/_config/{section}': resource('node-config', 'server-admin', 'GET', { GET: getConfigurationSection }),
    '/_node/{node}/_config/{section}/{key}': resource('node-config', 'server-admin', 'GET,PUT,DELETE', {
      GET: getConfigurationValue, PUT: putConfigurationValue, DELETE: deleteConfigurationValue,
    }),
    '/_node/{node}/_restart': missingFeature('node-restart', 'server-admin', 'POST', 'Restarting a node over HTTP is'),
    '/_node/{node}/_smoosh/status': missingFeature('node-smoosh', 'server-admin', 'GET', 'The compaction daemon is'),
  }
}

/** The resource `/{db}`. */
export function databaseRoot(): Resource {
  return resource('database', 'member', 'DELETE,GET,HEAD,POST', {
    GET: getDatabase, PUT: putDatabase, DELETE: deleteDatabase, POST: postDocument,
  })
}

/** Resources of a database, by path without the database's name. */
export function databaseResources(): Readonly<Record<string, Resource>> {
  return {
    '/_all_docs': resource('all-docs', 'member', 'GET,HEAD,POST', { GET: listAllDocuments, POST: listAllDocuments }),
    '/_all_docs/queries': resource('all-docs-queries', 'member', 'POST', { POST: queryAllDocuments }),
    '/_design_docs': resource('design-docs', 'member', 'GET,HEAD,POST', {
      GET: listDesignDocuments, POST: listDesignDocuments,
    }),
    '/_design_docs/queries': resource('design-docs-queries', 'member', 'POST', { POST: queryDesignDocuments }),
    '/_local_docs': resource('local-docs', 'member', 'GET,HEAD,POST', {
      GET: listLocalDocuments, POST: listLocalDocuments,
    }),
    '/_local_docs/queries': resource('local-docs-queries', 'member', 'POST', { POST: queryLocalDocuments }),
    '/_changes': resource('changes', 'member', 'GET,HEAD,POST', {
      GET: getChanges, POST: getChanges, '*': refuseChangesMethod,
    }),
    '/_bulk_docs': resource('bulk-docs', 'member', 'POST', { POST: postBulkDocuments }),
    '/_bulk_get': resource('bulk-get', 'member', 'POST', { POST: postBulkGet }),
    '/_revs_diff': resource('revs-diff', 'member', 'POST', { POST: postRevisionsDiff }),
    '/_missing_revs': resource('missing-revs', 'member', 'POST', { POST: postMissingRevisions }),
    '/_security': resource('security', 'member', 'PUT,GET', { GET: getSecurity, PUT: putSecurity }),
    '/_revs_limit': resource('revs-limit', 'member', 'PUT,GET', { GET: getRevisionsLimit, PUT: putRevisionsLimit }),
    '/_purged_infos_limit': resource('purged-infos-limit', 'server-admin', 'GET,PUT', {
      GET: getPurgedInfosLimit, PUT: putPurgedInfosLimit,
    }),
    '/_auto_purge': resource('auto-purge', 'member', 'GET,PUT', { GET: getAutoPurge, PUT: putAutoPurge }),
    '/_purge': resource('purge', 'server-admin', 'POST', { POST: postPurge }),
    '/_purged_infos': resource('purged-infos', 'member', 'GET', { GET: getPurgedInfos }),
    '/_compact': resource('compact', 'maintenance', 'POST', { POST: postCompact }),
    '/_compact/{design}': resource('compact', 'maintenance', 'POST', { POST: postCompactDesign }),
    '/_view_cleanup': resource('view-cleanup', 'maintenance', 'POST', { POST: postViewCleanup }),
    '/_search_cleanup': resource('search-cleanup', 'server-admin', 'POST', { POST: postCleanup }),
    '/_nouveau_cleanup': resource('nouveau-cleanup', 'server-admin', 'POST', { POST: postCleanup }),
    '/_time_seq': resource('time-seq', 'member', 'GET,DELETE', { GET: getTimeSequence, DELETE: deleteTimeSequence }),
    '/_shards': resource('shards', 'member', 'GET', { GET: getShards }),
    '/_shards/{id}': resource('shards', 'member', 'GET', { GET: getShardOfDocument }),
    '/_sync_shards': resource('sync-shards', 'server-admin', 'POST', { POST: postSynchronizeShards }),
    '/_ensure_full_commit': resource('ensure-full-commit', 'member', 'POST', { POST: postEnsureFullCommit }),
    '/_temp_view': resource('temp-view', 'member', 'POST', { '*': refuseTemporaryView }),
    '/_design/{name}/_info': resource('design-info', 'member', 'GET', { GET: getDesignInfo }),
    '/_design/{name}/_view': resource('view', 'member', viewMethods, {}),
    '/_design/{name}/_view/{view}': resource('view', 'member', viewMethods, { GET: listView, POST: listView }),
    '/_design/{name}/_view/{view}/{path...}': resource('view', 'member', viewMethods, {}),
    '/_design/{name}/_view/{view}/queries': resource('view-queries', 'member', 'POST', { POST: queryView }),
    ...findResources(),
    ...functionResources(),
    ...partitionResources(),
    ...documentResources(),
    ...laterDatabaseResources(),
  }
}

/** Queries by selector, and their indexes. */
function findResources(): Readonly<Record<string, Resource>> {
  const index = resource('index', 'member', 'DELETE', { DELETE: deleteIndex })
  return {
    '/_find': resource('find', 'member', 'POST', { POST: postFind }),
    '/_aggregate': resource('aggregate', 'member', 'POST', { POST: postAggregate }),
    '/_explain': resource('explain', 'member', 'POST', { POST: postExplain }),
    '/_index': resource('index', 'member', 'GET,POST', { GET: getIndexes, POST: postIndex }),
    '/_index/_bulk_delete': resource('index', 'member', 'POST', { POST: deleteIndexes }),
    '/_index/{design}/{type}/{name}': index,
    '/_index/_design/{design}/{type}/{name}': index,
  }
}

/** Functions of design documents that handle requests. */
function functionResources(): Readonly<Record<string, Resource>> {
  const show = resource('show', 'member', 'GET,HEAD,POST,PUT,DELETE', {
    GET: getShow, POST: getShow, PUT: getShow, DELETE: getShow,
  })
  const update = resource('update', 'member', 'POST,PUT,DELETE', {
    POST: postUpdate, PUT: postUpdate, DELETE: postUpdate, '*': refuseUpdateMethod,
  })
  const refusedList = resource('list', 'member', viewMethods, { '*': refuseListPath })
  return {
    '/_design/{name}/_show': { ...show, methods: { '*': refuseShowPath } },
    '/_design/{name}/_show/{function}': show,
    '/_design/{name}/_show/{function}/{id...}': show,
    '/_design/{name}/_list': refusedList,
    '/_design/{name}/_list/{function}': refusedList,
    '/_design/{name}/_list/{function}/{path...}': refusedList,
    '/_design/{name}/_list/{function}/{view}': resource('list', 'member', viewMethods, {
      GET: getList, POST: getList,
    }),
    '/_design/{name}/_list/{function}/{design}/{view}': resource('list', 'member', viewMethods, {
      GET: getListOfOther, POST: getListOfOther,
    }),
    '/_design/{name}/_update': { ...update, methods: { '*': refuseUpdatePath } },
    '/_design/{name}/_update/{function}': update,
    '/_design/{name}/_update/{function}/{id...}': update,
  }
}

function partitionResources(): Readonly<Record<string, Resource>> {
  return {
    '/_partition': resource('partition', 'member', 'GET', { '*': refusePartitionPath }),
    '/_partition/{partition}': resource('partition', 'member', 'GET', { GET: getPartition }),
    '/_partition/{partition}/_all_docs': resource('partition-all-docs', 'member', 'GET,HEAD,POST', {
      GET: listPartition, POST: listPartition,
    }),
    '/_partition/{partition}/_all_docs/queries': resource('partition-all-docs-queries', 'member', 'POST', {
      POST: queryPartition,
    }),
    '/_partition/{partition}/_find': resource('partition-find', 'member', 'POST', { POST: postFindInPartition }),
    '/_partition/{partition}/_aggregate': resource('partition-aggregate', 'member', 'POST', {
      POST: postAggregateInPartition,
    }),
    '/_partition/{partition}/_explain': resource('partition-explain', 'member', 'POST', {
      POST: postExplainInPartition,
    }),
    '/_partition/{partition}/_design/{name}/_view/{view}': resource('partition-view', 'member', viewMethods, {
      GET: listPartitionView, POST: listPartitionView,
    }),
    '/_partition/{partition}/_design/{name}/_view/{view}/queries': resource(
      'partition-view-queries', 'member', 'POST', { POST: queryPartitionView },
    ),
    '/_partition/{partition}/_design/{name}/_search/{index}': missingFeature(
      'partition-search', 'member', 'GET,POST', 'Text search is',
    ),
    '/_partition/{partition}/_design/{name}/_nouveau/{index}': missingFeature(
      'partition-nouveau', 'member', 'GET, POST', 'Text search is',
    ),
    '/_partition/{path...}': resource('partition', 'member', 'GET', { '*': refusePartitionedPath }),
  }
}

function documentResources(): Readonly<Record<string, Resource>> {
  const documentMethods = 'DELETE,GET,HEAD,POST,PUT,COPY'
  const document = resource('document', 'member', documentMethods, {
    GET: getDocument, PUT: putDocument, DELETE: deleteDocument, COPY: copyDocument, POST: postDocumentForm,
  })
  const attachment = resource('attachment', 'member', 'DELETE,GET,HEAD,PUT', {
    GET: getAttachment, DELETE: deleteAttachment, PUT: putAttachment,
  })
  const idPrefix = '_design/'
  return {
    '/{id}': document,
    '/{id}/{attachment...}': attachment,
    '/_design/{name}': { ...document, name: 'design-document', idPrefix },
    '/_design/{name}/{attachment...}': { ...attachment, idPrefix },
    '/_local': resource('local-document', 'member', documentMethods, { '*': refuseLocalName }),
    '/_local/{name}': resource('local-document', 'member', documentMethods, {
      GET: getLocalDocument, PUT: putLocalDocument, DELETE: deleteLocalDocument, COPY: copyLocalDocument,
    }),
    '/_local/{name}/{attachment...}': resource('local-document', 'member', 'DELETE,GET,HEAD,PUT', {
      '*': refuseLocalAttachment,
    }),
  }
}

/** Endpoints of CouchDB that this version does not implement. */
function laterDatabaseResources(): Readonly<Record<string, Resource>> {
  return {
    '/_design/{name}/_search/{index}': missingFeature('search', 'member', 'GET,POST', 'Text search is'),
    '/_design/{name}/_search_info/{index}': missingFeature('search', 'member', 'GET', 'Text search is'),
    '/_design/{name}/_search_disk_size/{index}': missingFeature('search', 'member', 'GET', 'Text search is'),
    '/_design/{name}/_nouveau/{index}': missingFeature('nouveau', 'member', 'GET, POST', 'Text search is'),
    '/_design/{name}/_nouveau_info/{index}': missingFeature('nouveau', 'member', 'GET', 'Text search is'),
  }
}

function refuseTemporaryView(): void {
  throw new ApiError('gone', 'Temporary views are not supported in CouchDB')
}

function refusePartitionPath(): void {
  throw new ApiError('bad_request', 'invalid_partition_req')
}
