/**
 * The text of proto/*.proto without its comments, made by proto/embed.ts; do not edit. This copy exists because
 * nothing outside `runtime` reads files.
 */
export const schemaText = {
  "link.proto": `syntax = "proto3";
package sectional;
message Identity {
  string node = 1;
  string address = 2;
  optional string cluster_id = 3;
  bytes instance = 4;
  repeated string start_ids = 5;
  double start_confirmed = 6;
}
message Hello {
  string magic = 1;
  uint32 min_version = 2;
  uint32 max_version = 3;
  bytes nonce = 4;
  Identity identity = 5;
  optional string expected = 6;
}
message Welcome { bytes core = 1; bytes proof = 2; }
message WelcomeCore { uint32 version = 1; bytes nonce = 2; Identity identity = 3; }
message Proof { bytes proof = 1; }
message Accepted {}
message Refused { string reason = 1; string kind = 2; }
message Handshake {
  oneof step { Hello hello = 1; Welcome welcome = 2; Proof proof = 3; Accepted accepted = 4; Refused refused = 5; }
}
message Message {
  uint32 id = 1;
  oneof content {
    Call call = 2;
    Reply reply = 3;
    Failure failure = 4;
    Cancel cancel = 5;
    Page page = 6;
    Credit credit = 7;
    End end = 8;
    Heartbeat heartbeat = 9;
    Retire retire = 10;
    Raft raft = 11;
    Chunk chunk = 12;
    Grant grant = 13;
  }
}
message Failure { string code = 1; string reason = 2; bool nothing_done = 3; }
message Cancel {}
message Credit { uint32 pages = 1; uint32 bytes = 2; }
message Chunk { bool last = 1; }
message Grant { uint32 bytes = 1; }
message End {}
message Heartbeat {}
message Retire { bool stopping = 1; }
`,
  "verbs.proto": `syntax = "proto3";
package sectional;
message Call {
  double timeout_ms = 1;
  optional string request_id = 2;
  Shard shard = 3;
  optional string history = 4;
  oneof verb {
    OpenDocument open_document = 10;
    OpenRevisions open_revisions = 11;
    UpdateDocuments update_documents = 12;
    StoreRevisions store_revisions = 13;
    DiffRevisions diff_revisions = 14;
    ScanDocuments scan_documents = 15;
    CountDocuments count_documents = 16;
    ScanChanges scan_changes = 17;
    OpenLocalDocuments open_local_documents = 18;
    UpdateLocalDocument update_local_document = 19;
    ScanLocalDocuments scan_local_documents = 20;
    ReplicaInfo replica_info = 21;
    DigestDocuments digest_documents = 22;
    ScanDigestBucket scan_digest_bucket = 23;
    CountChanges count_changes = 24;
    WaitForChange wait_for_change = 25;
    TranslateCheckpoints translate_checkpoints = 26;
    WriteBlob write_blob = 30;
    ReadBlob read_blob = 31;
    HasBlobs has_blobs = 32;
    CompactShard compact_shard = 50;
    PurgeDocuments purge_documents = 51;
    ScanPurges scan_purges = 52;
    TrimPurges trim_purges = 53;
    PartitionInfo partition_info = 54;
    TimeSpans time_spans = 55;
    BuildIndex build_index = 60;
    ScanIndex scan_index = 61;
    ReduceIndex reduce_index = 62;
    IndexInfo index_info = 63;
    DropIndexes drop_indexes = 64;
    Find find = 65;
    Status status = 40;
    Join join = 41;
    Propose propose = 42;
    Ask ask = 43;
    DesignChanged design_changed = 44;
  }
}
message Reply {
  oneof verb {
    OpenDocumentReply open_document = 10;
    OpenRevisionsReply open_revisions = 11;
    UpdateDocumentsReply update_documents = 12;
    StoreRevisionsReply store_revisions = 13;
    DiffRevisionsReply diff_revisions = 14;
    CountDocumentsReply count_documents = 16;
    OpenLocalDocumentsReply open_local_documents = 18;
    UpdateLocalDocumentReply update_local_document = 19;
    ReplicaInfoReply replica_info = 21;
    DigestDocumentsReply digest_documents = 22;
    CountChangesReply count_changes = 24;
    WaitForChangeReply wait_for_change = 25;
    TranslateCheckpointsReply translate_checkpoints = 26;
    WriteBlobReply write_blob = 30;
    HasBlobsReply has_blobs = 32;
    CompactShardReply compact_shard = 50;
    PurgeDocumentsReply purge_documents = 51;
    TrimPurgesReply trim_purges = 53;
    PartitionInfoReply partition_info = 54;
    TimeSpansReply time_spans = 55;
    BuildIndexReply build_index = 60;
    IndexInfoReply index_info = 63;
    DropIndexesReply drop_indexes = 64;
    StatusReply status = 40;
    JoinReply join = 41;
    ProposeReply propose = 42;
    AskReply ask = 43;
    DesignChangedReply design_changed = 44;
  }
}
message Page {
  oneof rows {
    DocumentRows documents = 1;
    ChangeRows changes = 2;
    LocalRows locals = 3;
    LeavesRows leaves = 4;
    BlobRows blob = 5;
    PurgeRows purges = 10;
    IndexRows index_rows = 11;
    GroupRows groups = 12;
    FoundRows found = 13;
  }
}
message Shard { string incarnation = 1; uint32 begin = 2; uint32 end = 3; }
message Path { double start = 1; repeated string ids = 2; }
message Leaf { string revision = 1; bool deleted = 2; }
message Bound { string id = 1; bool inclusive = 2; }
message Revision {
  string id = 1;
  Path path = 2;
  bool deleted = 3;
  uint32 body_length = 4;
  repeated Attachment attachments = 5;
  repeated string purges = 10;
  double attempt = 11;
}
message Attachment {
  string name = 1;
  string content_type = 2;
  double revpos = 3;
  bytes digest = 4;
  bytes blob = 5;
  double length = 6;
  bool gzip = 7;
  double stored_length = 8;
}
message Local { string id = 1; double revision = 2; double stamp = 3; optional uint32 body_length = 4; }
message OpenDocument { string id = 1; bool body = 2; bool tree = 3; }
message OpenDocumentReply { Snapshot snapshot = 1; }
message Snapshot {
  repeated Leaf leaves = 1;
  double sequence = 2;
  optional uint32 body_length = 3;
  Tree tree = 4;
  repeated Attachment attachments = 5;
}
message Tree { repeated Branch branches = 1; }
message Branch { Path path = 1; bool deleted = 2; repeated bool available = 3; repeated bool tombstones = 4; }
message OpenRevisions { repeated OpenRevisionsItem items = 1; }
message OpenRevisionsItem { string id = 1; bool named = 2; repeated string revisions = 3; bool latest = 4; }
message OpenRevisionsReply { repeated OpenedRevisions items = 1; }
message OpenedRevisions { repeated OpenedRevision revisions = 1; }
message OpenedRevision {
  oneof kind { Revision found = 1; string missing = 2; }
}
message Edit {
  string id = 1;
  optional string parent = 2;
  bool deleted = 3;
  string revision_hash = 4;
  uint32 body_length = 5;
  repeated Attachment attachments = 6;
  double attempt = 7;
  optional string revives = 8;
}
message UpdateDocuments {
  repeated Edit edits = 1;
  uint32 revs_limit = 2;
  bool force = 3;
  optional double partition_bytes_max = 10;
}
message UpdateDocumentsReply { bool declined = 1; repeated EditOutcome outcomes = 2; }
message EditOutcome {
  Path updated = 1;
  repeated string purges = 10;
  bool partition_overflow = 11;
  string tombstone = 12;
}
message Checkpoint { string history = 1; double sequence = 2; }
message StoreRevisions {
  repeated Revision revisions = 1;
  repeated Local locals = 2;
  uint32 revs_limit = 3;
  Checkpoint checkpoint = 4;
  bool external = 10;
  TrailExtension trail = 11;
  bool missed = 12;
}
message StoreRevisionsReply { repeated uint32 rivals = 1; repeated uint32 refused = 2; }
message TrailExtension { string history = 1; TrailPoint base = 2; repeated TrailPoint points = 3; }
message TrailPoint { double theirs = 1; double own = 2; }
message DiffRevisions { repeated DiffRevisionsItem items = 1; }
message DiffRevisionsItem { string id = 1; repeated string revisions = 2; }
message DiffRevisionsReply { repeated RevisionsDiff items = 1; }
message RevisionsDiff {
  string id = 1;
  repeated string missing = 2;
  repeated string possible_ancestors = 3;
  double sequence = 4;
  bool other_leaves = 5;
}
message ScanDocuments {
  Bound start = 1;
  Bound end = 2;
  bool descending = 3;
  optional uint32 limit = 4;
  bool body = 5;
  bool leaves = 6;
}
message DocumentRows { repeated DocumentRow rows = 1; }
message DocumentRow {
  string id = 1;
  string revision = 2;
  optional uint32 body_length = 3;
  Leaves leaves = 4;
  repeated Attachment attachments = 5;
}
message Leaves { repeated Leaf leaves = 1; }
message CountDocuments { Bound before = 1; bool descending = 2; }
message CountDocumentsReply { double count = 1; }
message ScanChanges {
  double since = 1;
  bool descending = 2;
  optional uint32 limit = 3;
  bool body = 4;
  bool locals = 5;
  optional string history = 6;
  bool purges = 7;
}
message ChangeRows { repeated ChangeRow rows = 1; }
message ChangeRow {
  double sequence = 1;
  string id = 2;
  repeated Leaf leaves = 3;
  optional uint32 body_length = 4;
  bool local = 5;
  repeated Attachment attachments = 6;
  bool purged = 7;
}
message CountChanges { double since = 1; }
message CountChangesReply { double count = 1; }
message WaitForChange { Checkpoint seen = 1; }
message WaitForChangeReply { Checkpoint reached = 1; }
message TranslateCheckpoints { repeated Checkpoint read = 1; }
message TranslateCheckpointsReply { double sequence = 1; }
message OpenLocalDocuments { repeated string ids = 1; }
message OpenLocalDocumentsReply { repeated FoundLocal items = 1; }
message FoundLocal { Local document = 1; }
message UpdateLocalDocument {
  string id = 1;
  double revision = 2;
  optional uint32 body_length = 3;
  bool must_exist = 4;
}
message UpdateLocalDocumentReply { Local updated = 1; }
message ScanLocalDocuments { Bound start = 1; Bound end = 2; bool descending = 3; optional uint32 limit = 4; }
message LocalRows { repeated Local rows = 1; }
message ReplicaInfo {}
message ReplicaInfoReply {
  string history = 1;
  double sequence = 2;
  double document_count = 3;
  double deleted_count = 4;
  double purge_sequence = 5;
  double file_bytes = 6;
  double active_bytes = 7;
  double external_bytes = 8;
  repeated Checkpoint seen = 9;
  bool catching_up = 10;
  double oldest_purge = 20;
  repeated Checkpoint purges_seen = 21;
  bool compacting = 22;
}
message Purge { string uuid = 1; string id = 2; repeated Path paths = 3; double sequence = 4; }
message PurgeDocuments { repeated Purge purges = 1; Checkpoint checkpoint = 2; }
message PurgeDocumentsReply { repeated Purged purged = 1; }
message Purged { repeated string revisions = 1; }
message ScanPurges { double since = 1; }
message PurgeRows { repeated Purge rows = 1; }
message TrimPurges { double sequence = 1; }
message TrimPurgesReply {}
message PartitionInfo { string partition = 1; }
message PartitionInfoReply {
  double document_count = 1;
  double deleted_count = 2;
  double active_bytes = 3;
  double external_bytes = 4;
}
message CompactShard {}
message CompactShardReply {}
message TimeSpans { bool clear = 1; }
message TimeSpansReply { repeated TimeSpan spans = 1; }
message TimeSpan { double begin = 1; double sequence = 2; }
message DigestDocuments { uint32 bucket_count = 1; }
message DigestDocumentsReply { repeated string buckets = 1; }
message ScanDigestBucket { uint32 bucket_count = 1; uint32 bucket = 2; }
message LeavesRows { repeated DocumentLeaves rows = 1; }
message DocumentLeaves { string id = 1; repeated Leaf leaves = 2; }
message WriteBlob {}
message WriteBlobReply { bytes hash = 1; double length = 2; }
message ReadBlob { bytes hash = 1; Span span = 2; }
message Span { double start = 1; double end = 2; }
message BlobRows { repeated BlobRow rows = 1; }
message BlobRow { uint32 length = 1; }
message HasBlobs { repeated bytes hashes = 1; }
message HasBlobsReply { repeated bool found = 1; }
message Status {}
message StatusReply {
  string node = 1;
  string address = 2;
  optional string cluster_id = 3;
  bool fresh = 4;
  optional string leader = 5;
}
message Join { string node = 1; string address = 2; optional string zone = 3; }
message JoinReply {
  oneof kind { string admitted = 1; string refused = 2; TryLater try_later = 3; Outdated outdated = 4; }
}
message Outdated {}
message TryLater { optional string leader = 1; }
message Propose {}
message ProposeReply {
  oneof kind { Applied applied = 1; NotLeader not_leader = 2; TimedOut timeout = 3; }
}
message Applied { double index = 1; }
message NotLeader { optional string leader = 1; }
message TimedOut {}
message Ask { string question = 1; }
message AskReply {}
message DesignChanged { string incarnation = 1; }
message DesignChangedReply {}
`,
  "indexes.proto": `syntax = "proto3";
package sectional;
message IndexDefinition {
  string kind = 1;
  string map = 2;
  optional string reduce = 3;
  repeated IndexOption options = 4;
}
message IndexOption {
  string name = 1;
  oneof value { string text = 2; bool flag = 3; }
}
message IndexState { Checkpoint position = 1; double read_sequence = 2; string version = 3; double row_count = 4; }
message BuildIndex { IndexDefinition definition = 1; optional double through = 2; double wait_ms = 3; }
message BuildIndexReply { IndexState state = 1; double through = 2; }
message IndexRead {
  string index = 1;
  optional double through = 2;
  repeated IndexRange ranges = 3;
  bool descending = 4;
  double skip = 5;
  optional uint32 limit = 6;
}
message IndexRange { IndexBound lower = 1; IndexBound upper = 2; }
message IndexBound { bytes key = 1; optional string id = 2; bool inclusive = 3; }
message ScanIndex { IndexRead read = 1; IndexPlace after = 2; }
message IndexPlace { uint32 range = 1; bytes key = 2; string id = 3; uint32 number = 4; }
message IndexRows { repeated IndexRow rows = 1; }
message IndexRow {
  IndexHead head = 1;
  uint32 range = 2;
  uint32 key_length = 3;
  string id = 4;
  uint32 number = 5;
  uint32 value_length = 6;
}
message IndexHead { IndexState state = 1; double rows_before = 2; }
message ReduceIndex { IndexRead read = 1; GroupPlace after = 2; optional uint32 group_level = 3; }
message GroupPlace { uint32 range = 1; bytes group = 2; }
message GroupRows { repeated GroupRow rows = 1; }
message GroupRow { IndexHead head = 1; uint32 range = 2; uint32 group_length = 3; uint32 value_length = 4; }
message Find {
  string selector = 1;
  oneof source { IndexRead index = 2; FindDocuments documents = 3; }
  IndexPlace after = 4;
  bool body = 5;
  bool leaves = 6;
  bool count_only = 7;
  optional string aggregate = 8;
  RowsOfKey within = 9;
  bool exact = 10;
}
message RowsOfKey { string index = 1; bytes key = 2; }
message FindDocuments { Bound start = 1; Bound end = 2; bool descending = 3; optional uint32 limit = 4; }
message FoundRows { repeated FoundRow rows = 1; }
message FoundRow {
  IndexHead head = 1;
  FindProgress progress = 2;
  uint32 range = 3;
  uint32 key_length = 4;
  string id = 5;
  uint32 number = 6;
  uint32 value_length = 7;
  optional string revision = 8;
  optional uint32 body_length = 9;
  repeated Attachment attachments = 10;
  Leaves leaves = 11;
  optional uint32 groups_length = 12;
}
message FindProgress { double keys_examined = 1; double documents_examined = 2; double matches = 3; }
message IndexInfo { string index = 1; }
message IndexInfoReply {
  IndexState state = 1;
  IndexDefinition definition = 2;
  bool building = 3;
  double waiting = 4;
  double failed_count = 5;
  repeated IndexFailure failures = 6;
  double file_bytes = 7;
  double active_bytes = 8;
  double external_bytes = 9;
}
message IndexFailure { string id = 1; string error = 2; }
message DropIndexes { repeated string except = 1; }
message DropIndexesReply {}
`,
  "raft.proto": `syntax = "proto3";
package sectional;
message Raft {
  string from = 1;
  string to = 2;
  double term = 3;
  oneof type {
    VoteRequest vote_request = 4;
    VoteReply vote_reply = 5;
    Append append = 6;
    AppendReply append_reply = 7;
    InstallSnapshot snapshot = 8;
    SnapshotReply snapshot_reply = 9;
  }
}
message VoteRequest { double last_index = 1; double last_term = 2; bool pre_vote = 3; }
message VoteReply { bool granted = 1; bool pre_vote = 2; }
message Append {
  double previous_index = 1;
  double previous_term = 2;
  double commit = 3;
  repeated Entry entries = 4;
  double round = 5;
}
message Entry {
  enum Kind { command = 0; configuration = 1; noop = 2; }
  double index = 1;
  double term = 2;
  Kind kind = 3;
  uint32 payload_length = 4;
}
message AppendReply { bool success = 1; double match_index = 2; double conflict_index = 3; double round = 4; }
message InstallSnapshot {
  double index = 1;
  double snapshot_term = 2;
  repeated string voters = 3;
  repeated string learners = 4;
  double round = 5;
  double offset = 6;
  optional double total_bytes = 7;
  optional double checksum = 8;
}
message SnapshotReply { double index = 1; double received = 2; double round = 3; }
`,
} as const
