/**
 * Every limit of the server, in one place, with the relations that must hold between them. Bytes end
 * in `Bytes…`, durations in `…Ms`, counts in `…Max`; what a user can set has its default here too.
 */
import { assert } from "./assert.ts";

export const KIB = 1024;
export const MIB = 1024 * KIB;

// Names and records (contract README, "limits").
/** Stream name, in bytes of its decoded UTF-8. */
export const STREAM_NAME_BYTES_MAX = 1024;
/** Content type as stored, in bytes. */
export const CONTENT_TYPE_BYTES_MAX = 1024;
/** Records of one append. */
export const BATCH_RECORDS_MAX = 10_000;
export const RECORD_HEADERS_MAX = 256;
/** Request body; hence also one record and one batch. Can be set (`--max-request-size`). */
export const REQUEST_BYTES_DEFAULT = 32 * MIB;
export const REQUEST_BYTES_MAX = 64 * MIB;
/** Request bodies that are being received, all together. */
export const REQUEST_BODIES_BYTES_MAX = 256 * MIB;
/** Producer id, in bytes of UTF-8. */
export const PRODUCER_ID_BYTES_MAX = 1024;
/** `Stream-Seq`, in bytes of UTF-8. */
export const STREAM_SEQ_BYTES_MAX = 1024;
/** Producers that a stream remembers (DESIGN 5): beyond, those idle this long make room. */
export const PRODUCERS_MAX = 10_000;
export const PRODUCER_IDLE_MS = 7 * 24 * 3600 * 1000;
/** Offsets, ids and indexes are whole numbers that a double holds exactly. */
export const OFFSET_MAX = Number.MAX_SAFE_INTEGER;

// Reads.
/** Default page and SSE chunk (`--max-chunk-size`). */
export const PAGE_BYTES_DEFAULT = 64 * KIB;
/** What one read may collect in memory, whatever the client asks for. */
export const PAGE_BYTES_MAX = 4 * MIB;
export const LIST_LIMIT_DEFAULT = 1000;
export const LIST_LIMIT_MAX = 10_000;
/** Live reads (long polls and SSE) of one node. */
export const WAITERS_MAX = 100_000;
/** Event streams of a listener that are served in one turn of the event loop; what came in meanwhile goes before the others. */
export const EVENT_STREAMS_PER_TURN = 32;

// WAL.
/** Entry bytes not yet uploaded; beyond, appends answer `unavailable`. */
export const BACKLOG_BYTES_DEFAULT = 256 * MIB;
/** A batch seals at this size (`maxBytesInBatch`), except that one entry always fits. */
export const SEGMENT_BYTES_DEFAULT = 8 * MIB;
/** Largest stored WAL segment: one maximal entry with its tail state, and the header. */
export const SEGMENT_BYTES_MAX = 128 * MIB;
/** Segments being written at once: object stores, and the two files of the local disk. */
export const SEGMENTS_IN_FLIGHT_OBJECT = 16;
export const SEGMENTS_IN_FLIGHT_LOCAL = 2;
export const SEGMENTS_IN_FLIGHT_POSTGRES = 4;
/** A segment is a row, and a larger one takes the server longer than the next append should wait. */
export const SEGMENT_BYTES_POSTGRES = 1 * MIB;
/** Buffer that small segments are collected in; a segment keeps only what it needs. */
export const WAL_SLAB_BYTES = 64 * KIB;
/** Pace of the retries of a segment that the store refuses; their number has no bound. */
export const WAL_RETRY_MS_MIN = 20;
export const WAL_RETRY_MS_MAX = 1000;
/** A segment that reads back damaged this often is damaged. */
export const WAL_BAD_READS_MAX = 3;
/** Files of the local-disk WAL: the first ones, and those prepared while they fill. */
export const WAL_FIRST_FILE_BYTES = 4 * MIB;
export const WAL_FILE_BYTES = 64 * MIB;
/** Data objects that one search of a stream asks at once. */
export const OBJECT_READS_MAX = 32;
/** What reads remember of streams in data objects: some 200 bytes each. */
export const STREAM_GAPS_MAX = 65_536;
/** What is fetched ahead for one sequential reader at most; never more than it has read so far. */
export const READ_AHEAD_WINDOW_BYTES = 8 * MIB;
/** What is fetched ahead for all of them, on the way or in the block cache and not read yet; and its share of that cache. */
export const READ_AHEAD_BYTES_MAX = 32 * MIB;
export const READ_AHEAD_CACHE_SHARE = 1 / 4;
/** Looks at what to fetch ahead that are under way at once; and sequential readers that are remembered, some 200 bytes each. */
export const READ_AHEAD_LOOKS_MAX = 64;
export const SEQUENTIAL_READS_MAX = 16_384;
/** WAL files of one life that a start scans at once, each through a buffer of 1 MiB. */
export const WAL_FILES_READ_MAX = 4;
/** Reads of a takeover under way at once, and segment bytes that it keeps from its check to its replay. */
export const TAKEOVER_READS_MAX = 8;
export const TAKEOVER_KEPT_BYTES = 64 * MIB;
/** Attempts of one read or create in a takeover before it gives up; the caller may start it again. */
export const TAKEOVER_ATTEMPTS_MAX = 20;
/** Times that a takeover may find a writer, not yet aware of its fence, to have been faster. */
export const TAKEOVER_ROUNDS_MAX = 1000;

/** A WAL that has not answered for this long is stalled, and appends that wait for it this long are answered, with their outcome open. */
export const STALL_ANSWER_MS = 10_000;

/** Reads of a store that have failed must work for this long before the log says that they do. */
export const STORE_CALM_MS = 5_000;

// Upload and data objects (DESIGN 6).
export const UPLOAD_BYTES_DEFAULT = 100 * MIB;
export const UPLOAD_SEGMENTS_DEFAULT = 1000;
export const UPLOAD_INTERVAL_MS_DEFAULT = 60_000;
export const OBJECT_BYTES_TARGET = 64 * MIB;
export const BLOCK_BYTES_TARGET = 64 * KIB;
export const INDEX_LEAF_BYTES = 16 * KIB;
export const INDEX_TOP_BYTES_MAX = 64 * KIB;
/** First read of an object, from its end: holds footer, top index and filter of up to some 30,000 streams. */
export const OBJECT_HEAD_READ_BYTES = 64 * KIB;
/** How long a prepared object may stay uncommitted. */
export const PREPARED_OBJECT_TTL_MS = 15 * 60_000;
/** The longest that one create of an object may be under way, whatever the store: none is begun so shortly before the expiry. */
export const OBJECT_CREATE_MS_MAX = 4 * 60_000;
/** Tries of one object before the whole attempt begins again. */
export const OBJECT_CREATE_ATTEMPTS_MAX = 5;
/** A failed attempt waits this long for the commands that give its objects up. */
export const OBJECT_GIVE_UP_MS = 10_000;

// Compaction (DESIGN 6).
/** Between two looks of the lease holder at what there is to merge; a look asks the store for nothing. */
export const COMPACTION_INTERVAL_MS = 1000;
/** Objects of level 0, and objects of a deeper level that cover one place, that are merged. So many a level are asked for a stream, at most. */
export const COMPACTION_DEPTH_MAX = 8;
/** Inputs of one merge, and their bytes. */
export const COMPACTION_INPUTS_MAX = 64;
export const COMPACTION_INPUT_BYTES_MAX = 1024 * MIB;
/** A level needs eight times the objects of the one above it: this one is never reached by merging alone. */
export const COMPACTION_LEVEL_MAX = 20;
/** What a merge holds of its inputs, all together and of one; the object being written comes on top. */
export const COMPACTION_READ_BYTES = 32 * MIB;
export const COMPACTION_WINDOW_BYTES_MAX = 4 * MIB;
/** Objects with this share of dead bytes are rewritten: so live objects hold at most 1.25 times the live bytes. */
export const COMPACTION_DEAD_SHARE_MIN = 0.2;
/** Objects whose index one round looks at for dead bytes. */
export const COMPACTION_LOOKS_PER_ROUND = 4;
/** An object of which a few streams died is looked at again after this long. */
export const COMPACTION_LOOK_AGAIN_MS = 10 * 60_000;
/** Between two looks at one object, however many of its streams die. */
export const COMPACTION_LOOK_PAUSE_MS = 30_000;
/** Back-off of rounds that failed. */
export const COMPACTION_RETRY_MS_MAX = 60_000;
/** An object that the store refuses to read this often is left alone for `COMPACTION_LOOK_AGAIN_MS`. */
export const COMPACTION_READ_REFUSALS_MAX = 3;
/** An input that could not be read is left alone for this long. */
export const COMPACTION_DAMAGE_RETRY_MS = 60 * 60_000;

/** Long work gives way to other work after this much: a millisecond or two. */
export const WORK_SLICE_BYTES = 1 * MIB;
export const WORK_SLICE_STEPS = 512;
export const UPLOAD_RETRY_MS_MIN = 100;
export const UPLOAD_RETRY_MS_MAX = 10_000;

// Scrub: store and metadata compared.
/** Between two by themselves (`--scrub-interval-sec`); 0: none. */
export const SCRUB_INTERVAL_SECONDS_DEFAULT = 24 * 3600;
export const SCRUB_INTERVAL_SECONDS_MAX = 365 * 24 * 3600;
/** A node that has just started, or could not finish one, does the next one sooner than an interval. */
export const SCRUB_FIRST_MS = 3600_000;
export const SCRUB_RETRY_AFTER_MS = 3600_000;
/** How often it is looked whether one is due. */
export const SCRUB_LOOK_MS = 60_000;
/** Age that an orphan needs before it is deleted: as asked for by default, and at least. */
export const SCRUB_AGE_SECONDS_DEFAULT = 24 * 3600;
export const SCRUB_AGE_SECONDS_MIN = 30 * 60;
export const SCRUB_AGE_SECONDS_MAX = 3650 * 24 * 3600;
/** Orphans that one run remembers for their delete, some 150 bytes each; the others are left to the next. */
export const SCRUB_ORPHANS_MAX = 100_000;
/** Objects that are asked for at once where the list did not have them. */
export const SCRUB_LOOKS_MAX = 16;
/** Bytes of one read of the verification, except that one block always fits, and of all of them a second. */
export const SCRUB_READ_BYTES = 4 * MIB;
export const SCRUB_BYTES_PER_SECOND = 64 * MIB;
/** Tries of a call that changes nothing. */
export const SCRUB_TRIES_MAX = 5;
export const SCRUB_RETRY_MS_MIN = 200;
export const SCRUB_RETRY_MS_MAX = 10_000;

// Caches.
/** Pages of all streams together that are kept for readers who ask for the same one. */
export const KEPT_PAGES_BYTES_MAX = 32 * MIB;
export const LOG_CACHE_BYTES_DEFAULT = 200 * MIB;
export const BLOCK_CACHE_BYTES_DEFAULT = 100 * MIB;
/** A session without requests this long is dropped once its last entry is uploaded. */
export const SESSION_IDLE_MS = 60_000;

// Metadata.
/** Commands of one batch, and bytes of its payload. */
export const COMMANDS_PER_BATCH_MAX = 256;
export const COMMAND_BATCH_BYTES_MAX = 1 * MIB;
/** Commands waiting for a batch; beyond, proposals answer `unavailable`. */
export const PROPOSALS_WAITING_MAX = 20_000;
export const SNAPSHOT_EVERY_COMMANDS = 1024;
/** Log rows younger than this survive truncation. */
export const LOG_KEEP_MS = 10 * 60_000;
/** Beyond this many rows truncation spares neither young ones nor those that a slow node has not applied. */
export const LOG_ROWS_MAX = 200_000;
export const LOG_TRUNCATE_INTERVAL_MS = 60_000;
/** How often the log is read without a wake, and its last applied row compared without new ones. */
export const LOG_POLL_MS = 250;
export const LOG_VERIFY_MS = 5000;
/** Rows of one read of the log. */
export const LOG_PAGE_ROWS = 256;
/** A catch-up waits this long for the database before it answers `unavailable`. */
export const CATCH_UP_WAIT_MS = 5000;
/** Back-off of a batch whose insert failed or whose answer was lost. */
export const PROPOSAL_RETRY_MIN_MS = 50;
export const PROPOSAL_RETRY_MAX_MS = 2000;
/** A batch whose outcome is not known after this long is overdue: the database is slow or away. */
export const PROPOSAL_OVERDUE_MS = 1000;
/** Inserts of a batch that SQL refused for certain, before its proposals answer `unavailable`. */
export const PROPOSAL_TRIES_MAX = 3;
/** A node whose heartbeat counter stood still this long does not hold back truncation. */
export const HEARTBEAT_LIVE_MS = 60_000;
/** A step of the database's clock against the monotonic one that pauses expiry, and for how long. */
export const DATABASE_CLOCK_JUMP_MS = 1000;
export const DATABASE_CLOCK_STEADY_MS = 60_000;
/** Maintenance: pause between rounds, streams looked at and commands proposed in one. */
export const MAINTENANCE_INTERVAL_MS = 1000;
export const MAINTENANCE_STREAMS_PER_ROUND = 20_000;
export const MAINTENANCE_COMMANDS_PER_ROUND = 256;
/** A prepared object is given up this long after its expiry. */
export const PREPARED_OBJECT_GRACE_MS = 60_000;
/** Stream ids reserved at a time (`reserve_ids`). */
export const STREAM_IDS_PER_RESERVATION = 1 << 20;
export const LEASE_TTL_MS = 10_000;
export const HEARTBEAT_INTERVAL_MS = 1000;
/** Between two looks at the heartbeat of a predecessor that may live. */
export const PREDECESSOR_LOOK_MS = 250;
/** The longest that its heartbeat must stand still, however slowly the database answers; more where its failover limit is longer. */
export const PREDECESSOR_WATCH_MS_MAX = 120_000;
export const FAILOVER_TIMEOUT_MS_DEFAULT = 5000;
export const FAILOVER_TIMEOUT_MS_MIN = 2000;
/** A node takes itself for fenced, until it has proof, this long before others may fence it. */
export const FENCE_DOUBT_MARGIN_MS = 1000;
/** A create, delete, acquire or trim waits this long for its outcome before it answers `unavailable`. */
export const PROPOSAL_WAIT_MS = 10_000;

// The mirror of the command log in the bucket.
/** How far the mirror is behind while there is something new, but for the store's own time. */
export const MIRROR_INTERVAL_MS = 1000;
/** Rows of one chunk of the log; its bytes are those of a page (`LOG_PAGE_BYTES`). */
export const MIRROR_CHUNK_ROWS_MAX = 4096;
/** Bytes of one part of a snapshot, except that one row always fits. */
export const MIRROR_PART_BYTES = 8 * MIB;
/** A snapshot is due once so much log, and more than half of the last one's size, or so many chunks are behind it. */
export const MIRROR_SNAPSHOT_LOG_BYTES = 4 * MIB;
export const MIRROR_CHUNKS_MAX = 10_000;
/** Between two looks whether a snapshot is due, or something older is left to delete. */
export const MIRROR_SNAPSHOT_INTERVAL_MS = 5000;
/** Objects of the mirror that a restore reads at once. */
export const MIRROR_READS_MAX = 8;
/** A chunk that reads back damaged is written again under another key, so often. */
export const MIRROR_REPAIRS_MAX = 9;

// Holding removal back during a backup.
export const REMOVAL_HOLD_SECONDS_DEFAULT = 3600;
export const REMOVAL_HOLD_SECONDS_MAX = 7 * 24 * 3600;

// Restore.
/** Ids passed over: far more than can have been handed out since the last mirrored command. */
export const RESTORE_STREAM_ID_GAP = 2 ** 36;
export const RESTORE_OBJECT_ID_GAP = 2 ** 32;
/** How long a restore tries a bucket that does not answer; an attempt that is under way then comes to its own end. */
export const RESTORE_WAIT_MS = 60_000;
/** Attempts while another process goes on writing to the mirror. */
export const RESTORE_TRIES_MAX = 3;
/** Streams and objects that a report or an error names. */
export const RESTORE_ITEMS_MAX = 100;

// SQL.
/** Payload bytes of one page of the log, except that one row always fits. */
export const LOG_PAGE_BYTES = 8 * MIB;
/** Rows of one page of a snapshot that is read. */
export const SNAPSHOT_PAGE_ROWS = 1000;
export const HEARTBEAT_LOAD_BYTES_MAX = 4 * KIB;
/** How long a transaction waits for another process that holds the SQLite file. */
export const SQLITE_BUSY_MS = 2000;
/** A call to the database that has no answer by then is given up. */
export const SQL_CALL_TIMEOUT_MS = 10_000;
/** Calls of one node waiting for the database; beyond, they fail at once. */
export const SQL_CALLS_WAITING_MAX = 1000;
/** Until a connection to Postgres can be used, and connections of one node besides those that listen and beat. */
export const POSTGRES_CONNECT_TIMEOUT_MS_DEFAULT = 5000;
export const POSTGRES_CONNECT_TIMEOUT_MS_MAX = 60_000;
export const POSTGRES_CONNECTIONS_DEFAULT = 4;
export const POSTGRES_CONNECTIONS_MAX = 100;
/** A heartbeat or a fence that has no answer by then goes over another connection; twice as long behind each that had none. */
export const POSTGRES_FAILOVER_CALL_MS = 1500;
/** The server gives a transaction up whose client is silent this long: what it locks is free again. */
export const POSTGRES_IDLE_TRANSACTION_MS = 3000;
/** The same for one that only reads, and so keeps nobody waiting. */
export const POSTGRES_LONG_IDLE_MS = 60_000;
/** The server gives a wait for a lock, a statement, and a transaction of one statement up. */
export const POSTGRES_LOCK_TIMEOUT_MS = 6000;
export const POSTGRES_STATEMENT_TIMEOUT_MS = 8000;
export const POSTGRES_TRANSACTION_TIMEOUT_MS = 15_000;
/** A connection without traffic is probed by the system after this. */
export const POSTGRES_KEEP_ALIVE_SECONDS = 10;
/** The time that a connection is given to be closed well. */
export const POSTGRES_LEAVE_SECONDS = 1;
/** How often the connection that listens is asked whether it lives, and the pace of its return. */
export const POSTGRES_LISTEN_CHECK_MS = 10_000;
export const POSTGRES_LISTEN_RETRY_MIN_MS = 100;
export const POSTGRES_LISTEN_RETRY_MAX_MS = 5000;
/** Rows and bytes that one statement brings into a snapshot; one row always fits. */
export const POSTGRES_WRITE_ROWS = 1000;
export const POSTGRES_WRITE_BYTES = 4 * MIB;
/** Rows of the log that one statement removes. */
export const POSTGRES_TRUNCATE_ROWS = 10_000;
/** Segments of a WAL that one statement removes. */
export const POSTGRES_TRIM_ROWS = 100;

// Object stores and files.
export const OBJECT_KEY_BYTES_MAX = 512;
/** Keys of one list page, and of one delete. */
export const OBJECT_LIST_LIMIT_MAX = 1000;
export const OBJECT_DELETE_KEYS_MAX = 1000;
/** A call of the file store that has no answer by then is given up; the largest object must fit. */
export const FILE_CALL_TIMEOUT_MS = 60_000;
/**
 * One attempt of a request to an S3 store, and all attempts of a call; both and 1 ms for each KiB that goes over the
 * wire. A store that stalls is asked again over another connection before whoever waits is answered.
 */
export const S3_ATTEMPT_TIMEOUT_MS = 6_000;
export const S3_CALL_TIMEOUT_MS = 30_000;
/**
 * A long read whose bytes go on coming is given more, up to 1 ms for each KiB of it and of as many like it as are under way at once, and
 * no more than this. Answers above the size are looked at while they come.
 */
export const S3_READ_TIMEOUT_MS_MAX = 4 * 60_000;
export const S3_WATCHED_BYTES_MIN = 64 * KIB;
export const S3_ATTEMPTS_MAX = 5;
export const S3_RETRY_MS_MIN = 50;
export const S3_RETRY_MS_MAX = 2_000;
/** Requests to an S3 store that are under way at once: reads, and beside them writes. The runtime takes 256 in all. */
export const S3_READS_MAX = 128;
export const S3_WRITES_MAX = 64;
/** Single deletes of one call that are under way at once, where a store has no others. */
export const S3_DELETES_AT_ONCE = 16;
/** Connections of the control calls: lists, deletes. */
export const S3_CONTROL_SOCKETS_MAX = 32;
/** Nothing that is stored is longer: an answer that is, or goes on beyond, is none of ours. */
export const S3_OBJECT_BYTES_MAX = 2 * SEGMENT_BYTES_MAX;
/** What is read of the body of an answer that is an error, or of one to a write. */
export const S3_ERROR_BYTES_MAX = 64 * KIB;
/** Pages that one list asks for: empty ones, and all of them where a store lists in no order. */
export const S3_LIST_PAGES_MAX = 10_000;
/** Left-overs of probes that one start looks at, each at least this old. */
export const PROBE_LEFTOVERS_MAX = 100;
export const PROBE_LEFTOVER_AGE_MS = 60 * 60_000;
/** No create takes effect this long after it was begun, however late its answer: what was deleted by then stays away. */
export const LATE_WRITE_MS = 5 * 60_000;
/** A destroyed object stays this long for readers of an older view. */
export const REMOVAL_DELAY_MS = 60_000;
/** Removal of destroyed objects: pause between rounds, and deletes of up to `OBJECT_DELETE_KEYS_MAX` keys in one. */
export const REMOVAL_INTERVAL_MS = 10_000;
export const REMOVAL_BATCHES_PER_ROUND = 16;
/** Pace of the repeats of a delete that the store refused; their number has no bound. */
export const REMOVAL_RETRY_MS_MIN = 10_000;
export const REMOVAL_RETRY_MS_MAX = 10 * 60_000;
/** Between two looks at what is left of WALs that may go; a trim that is wanted begins at once. */
export const WAL_TRIM_INTERVAL_MS = 60_000;
/** Temporary files of the file store older than this belong to nobody who still writes. */
export const TEMPORARY_FILE_KEEP_MS = 60 * 60_000;

/** Between two tries to take the lock of a node id that a process which was replaced still holds. */
export const NODE_ID_LOCK_RETRY_MS = 1000;
/** Deadlines stored by one command before a graceful end. */
export const DEADLINES_PER_COMMAND_MAX = 10_000;
/** Between two tries of a start that cannot write. */
export const START_RETRY_MS_MIN = 100;
export const START_RETRY_MS_MAX = 2_000;

// Figures for operators.
/** Between two samples of the activity, and samples kept: ten minutes. */
export const ACTIVITY_SAMPLE_MS = 2000;
export const ACTIVITY_SAMPLES_MAX = 300;
/** How often the lateness of a timer is measured. */
export const EVENT_LOOP_PROBE_MS = 100;
/** Different warnings and errors of the log that are kept, and characters of each, as of the last error of a loop. */
export const PROBLEMS_MAX = 20;
export const PROBLEM_CHARACTERS_MAX = 500;

// Edges.
export const LONG_POLL_SECONDS_DEFAULT = 25;
export const SSE_SECONDS_DEFAULT = 55;
export const SSE_HEARTBEAT_MS = 15_000;
export const STOP_TIMEOUT_SECONDS_DEFAULT = 30;

// The admin API.
/** Request body: a small JSON value. */
export const ADMIN_BODY_BYTES_MAX = 64 * KIB;
/** Items of each list of one answer: nodes, forks, producers, data objects, transfers. */
export const ADMIN_ITEMS_MAX = 100;
/** Between two looks of the command line at work that it follows. */
export const ADMIN_FOLLOW_MS = 250;
/** Data objects that are asked for a stream on behalf of an operator. */
export const HOLDING_LOOKS_MAX = 256;

// The client (`src/client`); what its user can set has its default here.
/** Hops of one request over `307` and `308`. */
export const CLIENT_HOPS_MAX = 5;
/** One attempt of a request, body included; for an event stream: until its head. Longer than a long poll waits. */
export const CLIENT_TIMEOUT_MS = 65_000;
/** An event stream that is silent this long is broken: comments come every `SSE_HEARTBEAT_MS`. */
export const CLIENT_SILENCE_MS = 45_000;
/** Attempts of one request, or in one outage of a live read or producer: time enough for a failover. */
export const CLIENT_ATTEMPTS_MAX = 16;
export const CLIENT_RETRY_TOTAL_MS = 60_000;
export const CLIENT_RETRY_MS_MIN = 50;
export const CLIENT_RETRY_MS_MAX = 5_000;
/** Live answers that are empty and end sooner than this are followed by a pause. */
export const CLIENT_QUICK_ANSWER_MS = 500;
/** Answers that are held in memory: a page of one maximal record, and one event. */
export const CLIENT_ANSWER_BYTES_MAX = 128 * MIB;
export const CLIENT_EVENT_BYTES_MAX = 64 * MIB;
/** What is read of the body of an error answer. */
export const CLIENT_ERROR_BYTES_MAX = 64 * KIB;
/** A producer's queue and batches. */
export const PRODUCER_QUEUE_BYTES = 16 * MIB;
export const PRODUCER_QUEUE_RECORDS = 10_000;
export const PRODUCER_BATCH_BYTES = 1 * MIB;
export const PRODUCER_BATCH_RECORDS = 1000;
/** Calls that wait for room in a producer's queue; beyond, they are refused. */
export const PRODUCER_CALLS_WAITING_MAX = 10_000;

// The verbs of the command line.
/** One piece of input, and one page that is read. */
export const CLI_INPUT_BYTES = 256 * KIB;
export const CLI_PAGE_BYTES = 1 * MIB;
/** What one request of an append carries, except that one line always fits. */
export const CLI_BATCH_BYTES = 1 * MIB;
/** Lines that an append holds: a few requests, so that one can fill while another is under way. */
export const CLI_QUEUE_BYTES = 4 * MIB;
/** A longer line is refused: the largest record of a server with default settings. */
export const CLI_LINE_BYTES_MAX = REQUEST_BYTES_DEFAULT;
/** Producer ids that all appends of one stream share, since a stream remembers `PRODUCERS_MAX` of them. */
export const CLI_PRODUCER_IDS = 1024;

/** The relations; checked once by a test and at start. */
export function assertLimitsAgree(): void {
  assert(PAGE_BYTES_DEFAULT <= PAGE_BYTES_MAX, "a default page fits the largest page");
  assert(REQUEST_BYTES_DEFAULT <= REQUEST_BYTES_MAX, "the default request fits the largest request");
  assert(REQUEST_BYTES_MAX * 2 <= REQUEST_BODIES_BYTES_MAX, "one maximal request leaves room for others");
  assert(REQUEST_BYTES_MAX * 2 <= SEGMENT_BYTES_MAX, "one maximal entry and its tail state fit a segment");
  assert(SEGMENT_BYTES_DEFAULT <= SEGMENT_BYTES_MAX, "a default segment fits the largest segment");
  assert(REQUEST_BYTES_MAX < BACKLOG_BYTES_DEFAULT, "one maximal entry fits the backlog");
  assert(UPLOAD_BYTES_DEFAULT < BACKLOG_BYTES_DEFAULT, "an upload starts before the backlog is full");
  assert(FAILOVER_TIMEOUT_MS_MIN <= FAILOVER_TIMEOUT_MS_DEFAULT, "the default failover limit is allowed");
  assert(HEARTBEAT_INTERVAL_MS * 2 <= FAILOVER_TIMEOUT_MS_MIN, "a failover limit spans two heartbeats");
  assert(COMMAND_BATCH_BYTES_MAX <= LOG_PAGE_BYTES, "one batch of commands fits a page of the log");
  assert(
    PREDECESSOR_LOOK_MS + 2 * SQL_CALL_TIMEOUT_MS < PREDECESSOR_WATCH_MS_MAX / 2,
    "no look that the database answers begins the longest watch anew",
  );
  assert(
    2 * HEARTBEAT_INTERVAL_MS + POSTGRES_FAILOVER_CALL_MS < FAILOVER_TIMEOUT_MS_DEFAULT - FENCE_DOUBT_MARGIN_MS,
    "a heartbeat that is lost with its connection is followed by another before the node doubts that it lives",
  );
  assert(SQLITE_BUSY_MS < SQL_CALL_TIMEOUT_MS, "a busy database is told apart from a silent one");
  assert(POSTGRES_IDLE_TRANSACTION_MS < POSTGRES_LOCK_TIMEOUT_MS, "who waits for a frozen node's lock gets it");
  assert(POSTGRES_LOCK_TIMEOUT_MS < POSTGRES_STATEMENT_TIMEOUT_MS, "a wait for a lock is told apart from a slow statement");
  assert(POSTGRES_STATEMENT_TIMEOUT_MS < SQL_CALL_TIMEOUT_MS, "a slow server is told apart from a silent one");
  assert(POSTGRES_STATEMENT_TIMEOUT_MS < POSTGRES_TRANSACTION_TIMEOUT_MS, "a statement is given up before its session");
  assert(FILE_CALL_TIMEOUT_MS <= OBJECT_CREATE_MS_MAX, "a create that was begun in time ends before the object expires");
  assert(OBJECT_CREATE_MS_MAX * 2 <= PREPARED_OBJECT_TTL_MS, "a prepared object lives long enough to be created and committed");
  assert(S3_ATTEMPT_TIMEOUT_MS < STALL_ANSWER_MS, "a stalled store is asked again before appends are answered");
  assert(S3_ATTEMPT_TIMEOUT_MS * 2 < S3_CALL_TIMEOUT_MS, "a call to a store has time for a second attempt");
  assert(S3_CALL_TIMEOUT_MS < S3_READ_TIMEOUT_MS_MAX, "a long read may take longer than all attempts of a short one");
  assert(OBJECT_BYTES_TARGET + SEGMENT_BYTES_MAX <= S3_OBJECT_BYTES_MAX, "what is stored can be read back");
  assert(S3_READS_MAX + S3_WRITES_MAX + S3_CONTROL_SOCKETS_MAX < 256, "requests to a store do not wait inside the runtime");
  assert(FILE_CALL_TIMEOUT_MS * 2 <= LATE_WRITE_MS, "a call of a store is over before its effect is held to be settled");
  assert(REMOVAL_DELAY_MS < LATE_WRITE_MS, "an object is deleted a first time before the last");
  assert(OBJECT_CREATE_MS_MAX < LATE_WRITE_MS, "an object that was begun in time is there before it is deleted for the last time");
  // The create, the question whose object it is, and the reading back of it where the store keeps no marks.
  const s3CreateMs = 3 * S3_CALL_TIMEOUT_MS + 2 * (OBJECT_BYTES_TARGET / KIB);
  assert(s3CreateMs <= OBJECT_CREATE_MS_MAX, "a create in a bucket that was begun in time ends before the object expires");
  assert(COMPACTION_DEPTH_MAX <= COMPACTION_INPUTS_MAX, "one merge takes all that cover a place");
  assert(COMPACTION_DEPTH_MAX * OBJECT_BYTES_TARGET <= COMPACTION_INPUT_BYTES_MAX, "one merge takes all that cover a place");
  assert(FILE_CALL_TIMEOUT_MS * 2 <= TEMPORARY_FILE_KEEP_MS, "a temporary file outlives the call that writes it");
  assert(MAINTENANCE_COMMANDS_PER_ROUND < PROPOSALS_WAITING_MAX, "a round of maintenance does not fill the queue of proposals");
  assert(HEARTBEAT_INTERVAL_MS * 2 <= HEARTBEAT_LIVE_MS, "a node that lives is seen to live");
  assert(
    SCRUB_AGE_SECONDS_MIN * 1000 >= PREPARED_OBJECT_TTL_MS + PREPARED_OBJECT_GRACE_MS + FILE_CALL_TIMEOUT_MS,
    "an orphan is older than any write that may still be under way",
  );
  assert(PAGE_BYTES_MAX * 2 <= READ_AHEAD_WINDOW_BYTES, "half of what is ahead of a reader is a whole page");
  assert(READ_AHEAD_WINDOW_BYTES <= READ_AHEAD_BYTES_MAX, "one sequential reader leaves room for others");
  assert(LIST_LIMIT_DEFAULT <= LIST_LIMIT_MAX, "a default list fits the largest list");
  assert(LONG_POLL_SECONDS_DEFAULT * 1000 < CLIENT_TIMEOUT_MS, "a client waits for the end of a long poll");
  assert(SSE_HEARTBEAT_MS * 2 < CLIENT_SILENCE_MS, "an event stream that lives is not taken for a broken one");
  assert(REQUEST_BYTES_MAX + PAGE_BYTES_MAX <= CLIENT_ANSWER_BYTES_MAX, "a page of one maximal record fits the client");
  assert(PRODUCER_BATCH_BYTES <= PRODUCER_QUEUE_BYTES, "a full batch of a producer fits its queue");
  assert(CLI_BATCH_BYTES * 2 <= CLI_QUEUE_BYTES, "a batch of the command line fills while another is under way");
  assert(CLI_PRODUCER_IDS <= PRODUCERS_MAX / 4, "the command line leaves room for other producers of a stream");
  assert(PRODUCER_BATCH_RECORDS <= BATCH_RECORDS_MAX, "the server takes a full batch of a producer");
}
