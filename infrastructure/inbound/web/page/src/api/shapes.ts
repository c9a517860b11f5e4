// Written by `make docs` from the description of the HTTP API.

export interface AcceptedBatch {
  status: 'accepted'
  batchId: string
  runs: AcceptedRun[]
}

export interface AcceptedBatchOfOne {
  status: 'accepted'
  batchId: string
  runs: AcceptedRun[]
  runId: string
  childSessionKey: string
  sessionId: string
  label: string | null
  mode: 'run' | 'session'
  note: string | null
  modelApplied: boolean | null
  attachments: AttachmentsReceipt | null
  warnings: string[]
}

export interface AcceptedRun {
  runId: string
  childSessionKey: string
  sessionId: string
  label: string | null
  mode: 'run' | 'session'
  note: string | null
  modelApplied: boolean | null
  attachments: AttachmentsReceipt | null
  warnings: string[]
}

export interface AcceptedSpawn {
  status: 'accepted'
  runs: AcceptedRun[]
  runId: string
  childSessionKey: string
  sessionId: string
  label: string | null
  mode: 'run' | 'session'
  note: string | null
  modelApplied: boolean | null
  attachments: AttachmentsReceipt | null
  warnings: string[]
}

export interface AckBody {
  position?: number | null
}

export interface AcknowledgedAnswer {
  id: string
  runId: string
}

export interface ActorView {
  kind: string
  token: string | null
  session: string | null
}

export interface AgentListing {
  requester: string
  allowAny: boolean
  agents: ListedAgent[]
}

export interface AnnouncementStateView {
  state: 'none' | 'pending' | 'delivered' | 'acknowledged' | 'skipped' | 'not_required'
  reason: string | null
  attempts: number
  lastError: string | null
}

export interface AnnouncementView {
  id: string
  runId: string
  requester: string
  childSessionKey: string | null
  label: string | null
  position: number
  createdAt: string | null
  status: string
  state: 'none' | 'pending' | 'delivered' | 'acknowledged' | 'skipped' | 'not_required'
  text: string | null
  origin: Record<string, string | number> | null
  dedupeKey: string
  acknowledgedAt: string | null
  deliveries: DeliveryView[]
}

export interface AttachAsBody {
  mountPath?: string | null
}

export interface AttachedFileView {
  name: string
  bytes: number
  sha256: string
}

export interface AttachmentBody {
  name: string
  content: string
  encoding?: 'utf8' | 'base64'
  mimeType?: string | null
}

export interface AttachmentsReceipt {
  count: number
  totalBytes: number
  files: AttachedFileView[]
  relDir: string
}

export interface AttachmentsView {
  count: number
  totalBytes: number
  relDir: string
  state: 'written' | 'removing' | 'removed' | 'left_in_place'
}

export interface BreakpointView {
  position: number
  asOf: string
  recordedAt: string | null
  runId: string | null
  sessionKey: string | null
  before: Record<string, JsonValue>
  after: Record<string, JsonValue>
  alreadyHeld: boolean
  event: EventView | null
}

export interface CallerView {
  kind: string
  token: string | null
  session: string | null
  runId: string | null
  scopes: ('spawn' | 'read' | 'content' | 'control' | 'worker' | 'admin')[]
  patterns: string[]
}

export interface ClaimBody {
  executor: string
  leaseSeconds?: number
}

export interface ClaimedAnswer {
  runId: string
  epoch: number
  leaseSeconds: number
  url: string | null
  token: string | null
  launch: Record<string, unknown>
}

export interface ComparedDecisionView {
  step: string
  rule: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'reference_unknown' | 'reference_ambiguous' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch' | 'dependencies' | 'context_scripts' | 'override' | 'model' | 'run_timeout' | 'tool_policy' | 'capabilities' | 'preamble'
  same: boolean
  left: ComparedRuleView | null
  right: ComparedRuleView | null
}

export interface ComparedEntryView {
  sequence: number
  kind: string
  body: Record<string, unknown>
}

export interface ComparedPartView {
  of: 'systemPrompt' | 'message'
  source: string
  verdict: 'equal' | 'different' | 'left_only' | 'right_only' | 'erased'
  left: PromptPartSideView | null
  right: PromptPartSideView | null
  diff: string | null
}

export interface ComparedPromptsView {
  same: boolean
  parts: ComparedPartView[]
}

export interface ComparedRuleView {
  result: 'passed' | 'refused' | 'not_judged' | 'not_recorded'
  compared: Record<string, JsonValue> | null
  text: string
  configRevision: number
}

export interface ComparedRunView {
  runId: string
  label: string | null
  stage: 'requested' | 'scripts-resolved' | 'overridden' | 'session-created' | 'queued' | 'started' | 'ended' | 'announced' | 'archived' | 'refused'
  status: 'preparing' | 'waiting' | 'queued' | 'running' | 'done' | 'failed' | 'timeout' | 'stopped' | 'unknown' | 'refused'
  configRevision: number
}

export interface ComparedSectionView {
  same: boolean
  left: Record<string, JsonValue>
  right: Record<string, JsonValue>
  changes: ({ op: 'add' | 'remove' | 'replace'; path: string; value?: unknown })[]
  erased: string[]
}

export interface ComparedTranscriptsView {
  same: boolean | null
  leftEntries: number | null
  rightEntries: number | null
  equalEntries: number
  firstDifference: FirstDifferenceView | null
  erased: boolean
}

export interface ContinuedAnswer {
  status: 'accepted'
  runId: string
  continues: string
  childSessionKey: string
  sessionId: string
  modelApplied: boolean | null
  warnings: string[]
}

export interface DeliveryView {
  webhook: string
  state: 'due' | 'delivered' | 'parked'
  attempts: number
  statusCode: number | null
  error: string | null
  nextAttemptAt: string | null
  parkedFor: 'attempts' | 'refused' | 'not_configured' | 'erased' | null
}

export interface DependencyView {
  runId: string | null
  name: string
  via: 'dependsOn' | 'chainAfter' | 'reference'
  require: 'success' | 'ended'
  state: 'waiting' | 'met' | 'unmet'
}

export interface DiffCountsView {
  added: number
  removed: number
  changed: number
  unchanged: number
}

export interface DiffItemView {
  kind: 'run' | 'session'
  id: string
  label: string | null
  patch: ({ op: 'add' | 'remove' | 'replace'; path: string; value?: unknown })[]
}

export interface DiffView {
  fromPosition: number
  toPosition: number
  fromConfigRevision: number | null
  toConfigRevision: number | null
  counts: DiffCountsView
  added: DiffItemView[]
  removed: DiffItemView[]
  changed: DiffItemView[]
  nextCursor: string | null
}

export interface DifferenceView {
  field: string
  recorded: unknown
  decided: unknown
}

export interface EndBody {
  epoch: number
  outcome: 'success' | 'error' | 'timeout' | 'stopped' | 'unknown'
  result?: string | null
  error?: string | null
  usage?: UsageBody[] | null
}

export interface EndedAnswer {
  runId: string
  outcome: 'success' | 'error' | 'timeout' | 'stopped' | 'unknown'
}

export interface EntryBody {
  kind: 'message' | 'tool' | 'usage' | 'progress' | 'result' | 'text'
  role?: 'assistant' | 'user' | 'system' | 'tool' | null
  text?: string | null
  name?: string | null
  input?: unknown
  output?: unknown
  inputTokens?: number | null
  outputTokens?: number | null
  model?: string | null
}

export interface EventBucketView {
  firstPosition: number | null
  firstAt: string | null
  lastPosition: number | null
  lastAt: string | null
  since: string | null
  until: string | null
  events: number
  types: Record<string, number>
  outcomes: Record<string, number>
  rules: Record<string, number>
}

export interface EventListView {
  items: EventView[]
  nextAfter: number
  nextBefore: number | null
  head: number
}

export interface EventView {
  position: number
  stream: string
  version: number
  type: string
  typeVersion: number
  recordedAt: string
  occurredAt: string
  eventId: string
  commandId: string
  actor: ActorView
  causation: string | null
  correlation: string | null
  runId: string | null
  traceparent: string | null
  configRevision: number
  writerVersion: string
  appendLast: number
  chainHash: string
  payload: Record<string, unknown>
}

export interface EventWithTexts {
  position: number
  stream: string
  version: number
  type: string
  typeVersion: number
  recordedAt: string
  occurredAt: string
  eventId: string
  commandId: string
  actor: ActorView
  causation: string | null
  correlation: string | null
  runId: string | null
  traceparent: string | null
  configRevision: number
  writerVersion: string
  appendLast: number
  chainHash: string
  payload: Record<string, unknown>
  texts: FailureText | ScriptFailureTexts
}

export interface ExplanationView {
  runId: string
  stage: 'requested' | 'scripts-resolved' | 'overridden' | 'session-created' | 'queued' | 'started' | 'ended' | 'announced' | 'archived' | 'refused'
  configRevision: number
  given: GivenTextsView
  decisions: RuleView[]
  refused: RefusalView | null
}

export interface FailureText {
  error: string | null
}

export interface FailureView {
  detail: string
}

export interface FinishedAnswer {
  status: 'done'
  runId: string
  childSessionKey: string
  sessionId: string
  label: string | null
  text: string
}

export interface FirstDifferenceView {
  left: ComparedEntryView | null
  right: ComparedEntryView | null
}

export interface GivenTextsView {
  agentId: string | null
  model: string | null
  thinking: string | null
  workspaceDir: string | null
  dependencies: string | null
}

export interface HealthAnswer {
  status: 'ok'
  version: string
}

export interface HeartbeatAnswer {
  runId: string
  stop: 'stopped' | 'steered' | 'yielded' | null
  by: string | null
  reason: string | null
  leaseSeconds: number
}

export interface HeartbeatBody {
  epoch: number
  leaseSeconds?: number
}

export interface HistogramView {
  by: 'position' | 'time'
  after: number
  until: number
  countedTo: number | null
  items: EventBucketView[]
}

export interface InboxView {
  items: AnnouncementView[]
  nextAfter: number | null
}

export type JsonValue = unknown

export interface LaneListView {
  items: LaneView[]
}

export interface LaneView {
  lane: string
  depth: number
  width: number | null
  running: RunningView[]
  queued: QueuedView[]
}

export interface ListedAgent {
  id: string
  name: string | null
  configured: boolean
  model: string | null
  runtime: string | null
}

export interface ListedAttachmentsView {
  count: number
  totalBytes: number
  files: AttachedFileView[]
  relDir: string
  state: 'written' | 'removing' | 'removed' | 'left_in_place'
}

export interface LogDifferenceView {
  position: number
  kind: string
  text: string
}

export interface LogHeadView {
  logId: string
  position: number
  recordedAt: string | null
  chainHash: string | null
  verifications: VerificationView[]
}

export interface MessageBody {
  message: string
  mode?: 'send' | 'steer'
}

export interface ModelUsageView {
  model: string | null
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
  pricedAs: string | null
  costUsd: number | null
}

export interface MomentView {
  position: number
  recordedAt: string | null
  appendLast: number | null
  configRevision: number | null
  before: NearEventView[]
  after: NearEventView[]
}

export interface NearEventView {
  position: number
  type: string
  recordedAt: string
  runId: string | null
  tree: string | null
}

export interface OwnRunView {
  runId: string
  stage: 'requested' | 'scripts-resolved' | 'overridden' | 'session-created' | 'queued' | 'started' | 'ended' | 'announced' | 'archived' | 'refused'
  continues: string | null
}

export interface PageCodeAnswer {
  code: string | null
  expiresInSeconds: number
}

export interface PageTokenAnswer {
  token: string
  expiresInSeconds: number
}

export interface PageTokenBody {
  code: string
}

export interface PendingUndoView {
  step: 'thread_binding' | 'context_fork' | 'workspace' | 'attachments' | 'context_engine'
  root: string | null
  relative: string | null
  failures: number
  nextAttemptAt: string
  error: string | null
}

export interface PreambleAnswer {
  sessionKey: string
  sessionId: string
  characters: number
  changed: boolean
}

export interface PreambleBody {
  preamble: string
}

export interface PreambleView {
  givenCharacters: number
  keptCharacters: number
  limit: number
}

export interface Problem {
  type: string
  title: string
  status: number
  detail: string
  instance: string
  code: 'bodies_busy' | 'cannot_respawn' | 'cannot_yield' | 'claim_over' | 'claimed_elsewhere' | 'erased' | 'foreign_cursor' | 'foreign_host' | 'foreign_origin' | 'headers_too_large' | 'idempotency_in_flight' | 'idempotency_key_reused' | 'internal' | 'invalid_request' | 'malformed_json' | 'method_not_allowed' | 'no_announcement' | 'no_session' | 'not_external' | 'not_found' | 'not_json' | 'not_offered' | 'not_permitted' | 'not_served_yet' | 'not_started' | 'precondition_failed' | 'queue_full' | 'run_active' | 'run_over' | 'session_closed' | 'spawn_error' | 'spawn_forbidden' | 'steered_too_soon' | 'target_too_long' | 'too_large' | 'too_much_told' | 'too_slow' | 'transcript_gap' | 'transcript_is_kept_here' | 'unauthorized' | 'unavailable' | 'what_if_busy'
  retryable: boolean
  rule?: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'reference_unknown' | 'reference_ambiguous' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch'
  limit?: number
  current?: number
  runId?: string
  childSessionKey?: string
  batchId?: string
  retryAfterMs?: number
  errors?: { pointer?: string; detail?: string }[]
}

export interface ProgressCountView {
  position: number
  until: number
  decisions: number
}

export interface ProgressView {
  text: string
  at: string
}

export interface PromptPartSideView {
  bytes: number
  sha256: string | null
}

export interface PromptPartView {
  of: 'systemPrompt' | 'message'
  source: string
  start: number
  end: number
  sha256: string
  reusedFrom: string | null
}

export interface PromptView {
  systemPrompt: string
  message: string
  parts: PromptPartView[]
}

export interface QueuedAnswer {
  status: 'queued'
  runId: string
  continues: string
  childSessionKey: string
  sessionId: string
  place: number
}

export interface QueuedMessageView {
  runId: string
  messagePreview: string | null
  by: string
  cause: 'message' | 'steer' | 'wake'
  queuedAt: string | null
}

export interface QueuedView {
  runId: string | null
  label: string | null
  place: number
  waitsFor: string
}

export interface ReachedStageView {
  stage: 'requested' | 'scripts-resolved' | 'overridden' | 'session-created' | 'queued' | 'started' | 'ended' | 'announced' | 'archived' | 'refused'
  position: number
  at: string
}

export interface ReadinessAnswer {
  status: 'ready'
  head: number
  tail: number
}

export interface RedriveBody {
  reason: string
  webhook?: string | null
}

export interface RedrivenAnswer {
  runId: string
  webhooks: string[]
}

export interface RefusalView {
  rule: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'reference_unknown' | 'reference_ambiguous' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch'
  status: 'forbidden' | 'error'
  text: string
  current: number | null
  limit: number | null
  step: string
}

export interface RefusedRunView {
  runId: string
  stage: 'requested' | 'scripts-resolved' | 'overridden' | 'session-created' | 'queued' | 'started' | 'ended' | 'announced' | 'archived' | 'refused'
  status: 'preparing' | 'waiting' | 'queued' | 'running' | 'done' | 'failed' | 'timeout' | 'stopped' | 'unknown' | 'refused'
  outcome: 'success' | 'error' | 'timeout' | 'stopped' | 'unknown' | null
  agentId: string | null
  label: string | null
  respawnedFrom: string | null
  createdAt: string
  stages: ReachedStageView[]
  rule: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'reference_unknown' | 'reference_ambiguous' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch' | null
  childSessionKey: string | null
}

export interface ReportBody {
  epoch: number
  first: number
  entries: EntryBody[]
}

export interface ReportedAnswer {
  runId: string
  next: number
}

export interface RequestedRunView {
  runId: string
  label: string | null
  stage: 'requested' | 'scripts-resolved' | 'overridden' | 'session-created' | 'queued' | 'started' | 'ended' | 'announced' | 'archived' | 'refused'
  agentId: string | null
}

export interface RequesterBody {
  sessionKey: string
  channel?: string | null
  accountId?: string | null
  to?: string | null
  threadId?: string | number | null
  groupId?: string | null
  groupChannel?: string | null
  groupSpace?: string | null
  memberRoleIds?: string[]
  agentIdOverride?: string | null
  workspaceDir?: string | null
  sandboxed?: boolean
  activeModel?: string | null
  activeThinking?: string | null
}

export interface RespawnBody {
  changes?: Record<string, unknown>
  scripts?: 'again' | 'recorded'
  transcript?: TranscriptChoice | null
  configRevision?: number | null
}

export interface RevisionListView {
  items: RevisionSummary[]
  nextCursor: string | null
}

export interface RevisionSummary {
  revision: number
  position: number
  activatedAt: string
  activatedBy: string
  source: string
  untilPosition: number | null
  untilAt: string | null
  bytes: number
  erased: boolean
}

export interface RevisionView {
  revision: number
  position: number
  activatedAt: string
  activatedBy: string
  source: string
  untilPosition: number | null
  untilAt: string | null
  bytes: number
  erased: boolean
  content: unknown
}

export interface RevokedAnswer {
  wasKnown: boolean
}

export interface RuleView {
  step: string
  rule: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'reference_unknown' | 'reference_ambiguous' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch' | 'dependencies' | 'context_scripts' | 'override' | 'model' | 'run_timeout' | 'tool_policy' | 'capabilities' | 'preamble'
  result: 'passed' | 'refused' | 'not_judged' | 'not_recorded'
  compared: Record<string, JsonValue> | null
  text: string
  position: number | null
  configRevision: number
}

export interface RunBarView {
  runId: string
  stage: 'requested' | 'scripts-resolved' | 'overridden' | 'session-created' | 'queued' | 'started' | 'ended' | 'announced' | 'archived' | 'refused'
  status: 'preparing' | 'waiting' | 'queued' | 'running' | 'done' | 'failed' | 'timeout' | 'stopped' | 'unknown' | 'refused'
  outcome: 'success' | 'error' | 'timeout' | 'stopped' | 'unknown' | null
  agentId: string | null
  label: string | null
  depth: number
  requesterSessionKey: string
  parentRunId: string | null
  childSessionKey: string | null
  respawnedFrom: string | null
  stages: ReachedStageView[]
}

export interface RunComparisonView {
  same: boolean
  left: ComparedRunView
  right: ComparedRunView
  request: ComparedSectionView
  decisions: ComparedDecisionView[]
  plan: ComparedSectionView
  prompt: ComparedPromptsView | null
  transcript: ComparedTranscriptsView | null
  outcome: ComparedSectionView
}

export interface RunEventListView {
  items: (EventWithTexts | EventView)[]
  nextAfter: number | null
}

export interface RunHistoryView {
  runId: string
  version: number
  items: StateChangeView[]
  setBy: Record<string, SetByView>
  nextAfter: number | null
}

export interface RunListView {
  items: RunSummary[]
  nextCursor: string | null
  totals?: RunTotalsView | null
}

export interface RunMetadataView {
  runId: string
  stage: 'requested' | 'scripts-resolved' | 'overridden' | 'session-created' | 'queued' | 'started' | 'ended' | 'announced' | 'archived' | 'refused'
  status: 'preparing' | 'waiting' | 'queued' | 'running' | 'done' | 'failed' | 'timeout' | 'stopped' | 'unknown' | 'refused'
  outcome: 'success' | 'error' | 'timeout' | 'stopped' | 'unknown' | null
  agentId: string | null
  requestedAgentId: string | null
  requesterSessionKey: string
  childSessionKey: string | null
  sessionId: string
  controllerSessionKey: string
  continues: string | null
  respawnedFrom: string | null
  batchId: string | null
  label: string | null
  taskPreview: string | null
  taskBytes: number
  depth: number
  role: string | null
  modelProvider: string | null
  model: string | null
  thinking: string | null
  runTimeoutSeconds: number | null
  mode: 'run' | 'session'
  cleanup: 'delete' | 'keep'
  contextMode: 'isolated' | 'fork'
  workspaceDir: string | null
  sandboxed: boolean | null
  tools: ToolsView | null
  warnings: string[]
  lane: string | null
  attachments: ListedAttachmentsView | AttachmentsView | null
  undoing: PendingUndoView[]
  createdAt: string
  startedAt: string | null
  endedAt: string | null
  announcedAt: string | null
  archivedAt: string | null
  archiveAt: string | null
  stages: ReachedStageView[]
  runtimeMs: number | null
  error: string | null
  rule: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'reference_unknown' | 'reference_ambiguous' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch' | null
  usage: UsageView | null
  estimatedCostUsd: number | null
  transcriptPath: string | null
  announcement: AnnouncementStateView
  dependsOn: DependencyView[]
  configRevision: number
  version: number
  cause: 'message' | 'steer' | 'wake' | null
  continuedBy: string | null
  yielded: boolean
  respawns: string[]
  contextPreamble: PreambleView | null
  transcriptEntries: number | null
}

export interface RunSharedContextView {
  runId: string
  position: number | null
  values: Record<string, unknown>
  erased: string[]
  sources: Record<string, SharedSourceView>
}

export interface RunSummary {
  runId: string
  stage: 'requested' | 'scripts-resolved' | 'overridden' | 'session-created' | 'queued' | 'started' | 'ended' | 'announced' | 'archived' | 'refused'
  status: 'preparing' | 'waiting' | 'queued' | 'running' | 'done' | 'failed' | 'timeout' | 'stopped' | 'unknown' | 'refused'
  outcome: 'success' | 'error' | 'timeout' | 'stopped' | 'unknown' | null
  agentId: string | null
  requestedAgentId: string | null
  requesterSessionKey: string
  childSessionKey: string | null
  sessionId: string
  controllerSessionKey: string
  continues: string | null
  respawnedFrom: string | null
  batchId: string | null
  label: string | null
  taskPreview: string | null
  taskBytes: number
  depth: number
  role: string | null
  modelProvider: string | null
  model: string | null
  thinking: string | null
  runTimeoutSeconds: number | null
  mode: 'run' | 'session'
  cleanup: 'delete' | 'keep'
  contextMode: 'isolated' | 'fork'
  workspaceDir: string | null
  sandboxed: boolean | null
  tools: ToolsView | null
  warnings: string[]
  lane: string | null
  attachments: ListedAttachmentsView | AttachmentsView | null
  undoing: PendingUndoView[]
  createdAt: string
  startedAt: string | null
  endedAt: string | null
  announcedAt: string | null
  archivedAt: string | null
  archiveAt: string | null
  stages: ReachedStageView[]
  runtimeMs: number | null
  error: string | null
  rule: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'reference_unknown' | 'reference_ambiguous' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch' | null
  usage: UsageView | null
  estimatedCostUsd: number | null
  transcriptPath: string | null
  announcement: AnnouncementStateView
  dependsOn: DependencyView[]
  configRevision: number
  version: number
  cause: 'message' | 'steer' | 'wake' | null
  continuedBy: string | null
  yielded: boolean
}

export interface RunTotalsView {
  runs: number
  statuses: Record<string, number>
  agents: Record<string, number>
  rules: Record<string, number>
  countedTo: number | null
}

export interface RunView {
  runId: string
  stage: 'requested' | 'scripts-resolved' | 'overridden' | 'session-created' | 'queued' | 'started' | 'ended' | 'announced' | 'archived' | 'refused'
  status: 'preparing' | 'waiting' | 'queued' | 'running' | 'done' | 'failed' | 'timeout' | 'stopped' | 'unknown' | 'refused'
  outcome: 'success' | 'error' | 'timeout' | 'stopped' | 'unknown' | null
  agentId: string | null
  requestedAgentId: string | null
  requesterSessionKey: string
  childSessionKey: string | null
  sessionId: string
  controllerSessionKey: string
  continues: string | null
  respawnedFrom: string | null
  batchId: string | null
  label: string | null
  task: string | null
  depth: number
  role: string | null
  modelProvider: string | null
  model: string | null
  thinking: string | null
  runTimeoutSeconds: number | null
  mode: 'run' | 'session'
  cleanup: 'delete' | 'keep'
  contextMode: 'isolated' | 'fork'
  workspaceDir: string | null
  sandboxed: boolean | null
  tools: ToolsView | null
  warnings: string[]
  lane: string | null
  attachments: ListedAttachmentsView | AttachmentsView | null
  undoing: PendingUndoView[]
  createdAt: string
  startedAt: string | null
  endedAt: string | null
  announcedAt: string | null
  archivedAt: string | null
  archiveAt: string | null
  stages: ReachedStageView[]
  runtimeMs: number | null
  error: string | null
  rule: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'reference_unknown' | 'reference_ambiguous' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch' | null
  usage: UsageView | null
  estimatedCostUsd: number | null
  transcriptPath: string | null
  announcement: AnnouncementStateView
  dependsOn: DependencyView[]
  configRevision: number
  version: number
  cause: 'message' | 'steer' | 'wake' | null
  continuedBy: string | null
  yielded: boolean
  respawns: string[]
  contextPreamble: PreambleView | null
  transcriptEntries: number | null
  progress: ProgressView | null
  resultText: string | null
  requesterOrigin: JsonValue
}

export interface RunningView {
  runId: string | null
  label: string | null
  holder: string | null
}

export interface ScriptFailureTexts {
  errors: Record<string, string | null>
}

export interface SearchView {
  items: BreakpointView[]
  method: 'scan' | 'bisection'
  eventsRead: number
  reads: number
  fromPosition: number
  toPosition: number
  searchedTo: number
  nextCursor: string | null
}

export interface SessionStoppedAnswer {
  sessionKey: string
  sessionId: string
  runId: string | null
  wasOver: boolean
  closed: boolean
}

export interface SessionTreeView {
  position: number
  at: string | null
  nodes: number
  cut: boolean
  root: TreeNodeView
}

export interface SessionView {
  sessionKey: string
  displayKey: string
  sessionId: string
  agentId: string
  depth: number
  role: 'main' | 'orchestrator' | 'leaf'
  controlScope: 'children' | 'none'
  sandboxed: boolean | null
  workspaceDir: string | null
  spawnedBy: string | null
  rootSessionKey: string
  runId: string | null
  stage: 'open' | 'closed'
  createdAt: string
  closedAt: string | null
  assertedBy: string | null
  assertions: ('agentId' | 'sandboxed')[]
  depthFrom: string | null
  activeChildren: number
  activeRuns: string[]
  maxChildren: number | null
  pendingDescendants: number
  runningDescendants: number
  runs: RequestedRunView[]
  ownRuns: OwnRunView[]
  modelProvider: string | null
  model: string | null
  modelSource: string | null
  thinking: string | null
  thinkingSource: string | null
  queue: QueuedMessageView[]
  unreadReports: string[]
  preamblePosition: number | null
  version: number
}

export interface SetByView {
  position: number
  version: number
  type: string
}

export interface SharedChangeView {
  position: number
  recordedAt: string
  cause: 'spawn' | 'patch' | 'inherited'
  by: string | null
  runId: string | null
  keys: string[]
}

export interface SharedContextPatch {
}

export interface SharedContextView {
  sessionKey: string
  version: number
  position: number
  sizes: Record<string, number>
  values: Record<string, unknown>
  erased: string[]
  sources: Record<string, SharedSourceView>
  history: SharedChangeView[]
  startedWith: SharedStartView[]
}

export interface SharedSizesView {
  sessionKey: string
  version: number
  position: number
  sizes: Record<string, number>
}

export interface SharedSourceView {
  kind: 'literal' | 'reference'
  sessionKey: string
  position: number | null
  runId: string | null
  by: string | null
}

export interface SharedStartView {
  runId: string
  position: number
  version: number
  label: string | null
}

export interface SpawnBody {
  requester: RequesterBody
  task: string | string[]
  label?: string | null
  agentId?: string | null
  model?: string | null
  thinking?: string | null
  runTimeoutSeconds?: number | null
  thread?: boolean
  mode?: 'run' | 'session' | null
  cleanup?: 'delete' | 'keep' | null
  sandbox?: 'inherit' | 'require'
  context?: 'isolated' | 'fork' | null
  lightContext?: boolean
  expectsCompletionMessage?: boolean
  attachments?: AttachmentBody[]
  attachAs?: AttachAsBody
  contextPreamble?: string | null
  sharedContext?: Record<string, unknown> | null
  sharedContextScope?: 'family' | 'child'
  parallel?: boolean
  dependsOn?: (string | { run: string; require?: 'success' | 'ended' })[]
  chainAfter?: string | { run: string; require?: 'success' | 'ended' } | null
}

export interface StateChangeView {
  position: number
  version: number
  type: string
  recordedAt: string
  actor: ActorView
  changes: ({ op: 'add' | 'remove' | 'replace'; path: string; value?: unknown })[]
}

export interface SteeredAnswer {
  status: 'accepted'
  runId: string
  replaces: string
  childSessionKey: string
  sessionId: string
  mode: 'restart'
  label: string | null
  text: string
}

export interface StopBody {
  reason?: string | null
}

export interface StoppedAnswer {
  runId: string
  wasOver: boolean
}

export interface TimelineView {
  after: number
  until: number
  items: RunBarView[]
  nextCursor: string | null
  buckets: EventBucketView[]
  bucketsCountedTo: number | null
}

export interface ToolsView {
  allow: string[] | null
  deny: string[]
}

export interface TotalsView {
  fromPosition: number
  toPosition: number
  decisions: number
  byVerdict: Record<string, number>
  byAgent: Record<string, Record<string, number>>
  byRule: Record<string, Record<string, number>>
}

export interface TranscriptBody {
  entries: EntryBody[]
  totalTokens?: number | null
}

export interface TranscriptChoice {
  upTo: number
}

export interface TranscriptEntryView {
  sequence: number
  recordedAt: string
  kind: string
  body: Record<string, unknown>
}

export interface TranscriptProvidedAnswer {
  sessionKey: string
  sessionId: string
  entries: number
  bytes: number
  tokens: number | null
  position: number
}

export interface TranscriptView {
  items: TranscriptEntryView[]
  nextAfter: number | null
  lastSequence: number
  complete: boolean
}

export interface TreeNodeView {
  sessionKey: string | null
  sessionId: string | null
  agentId: string | null
  depth: number
  role: string | null
  open: boolean
  createdAt: string
  activeChildren: number
  runs: TreeRunView[]
  children: TreeNodeView[]
  childrenCut: boolean
  refused: RefusedRunView[]
  refusedCut: boolean
}

export interface TreeRunView {
  runId: string
  stage: 'requested' | 'scripts-resolved' | 'overridden' | 'session-created' | 'queued' | 'started' | 'ended' | 'announced' | 'archived' | 'refused'
  status: 'preparing' | 'waiting' | 'queued' | 'running' | 'done' | 'failed' | 'timeout' | 'stopped' | 'unknown' | 'refused'
  outcome: 'success' | 'error' | 'timeout' | 'stopped' | 'unknown' | null
  agentId: string | null
  label: string | null
  respawnedFrom: string | null
  createdAt: string
  stages: ReachedStageView[]
}

export interface UsageBody {
  inputTokens: number
  outputTokens: number
  cacheReadTokens?: number
  cacheWriteTokens?: number
  model?: string | null
}

export interface UsageView {
  inputTokens: number
  outputTokens: number
  totalTokens: number
  cacheReadTokens: number | null
  cacheWriteTokens: number | null
  models: ModelUsageView[] | null
}

export interface VerificationStartView {
  began: boolean
  verification: VerificationView
}

export interface VerificationStopView {
  wasUnderWay: boolean
  verification: VerificationView | null
}

export interface VerificationView {
  number: number
  state: 'running' | 'right' | 'different' | 'stopped' | 'failed' | 'broken-off'
  startedBy: string
  origin: 'server' | 'command'
  process: string
  startedAt: string
  notedAt: string
  endedAt: string | null
  seconds: number
  stopRequestedBy: string | null
  began: number
  checked: number
  last: number | null
  headHash: string | null
  runRows: number
  sessionRows: number
  contents: number
  transcripts: number
  erased: number
  difference: LogDifferenceView | null
  failure: string | null
}

export interface WhatIfBody {
  config?: Record<string, unknown> | null
  configText?: string | null
  configName?: string | null
  patch?: Record<string, unknown>[] | null
  from?: string | null
  to?: string | null
  filter?: WhatIfFilter
  only?: ('same' | 'newly-refused' | 'newly-allowed' | 'different-agent' | 'different-model' | 'different-plan' | 'different-context' | 'different-announcement' | 'not-replayable')[]
  cascade?: boolean
  prompts?: boolean
}

export interface WhatIfFailureView {
  failure: FailureView
}

export interface WhatIfFilter {
  runId?: string | null
  tree?: string | null
  requester?: string | null
  agentId?: string[]
}

export interface WhatIfProgressView {
  progress: ProgressCountView
}

export interface WhatIfTotalsView {
  totals: TotalsView
}

export interface WhatIfVerdictView {
  runId: string
  position: number
  kind: 'spawn' | 'message'
  agentId: string | null
  label: string | null
  requesterSessionKey: string
  configRevision: number
  verdict: 'same' | 'newly-refused' | 'newly-allowed' | 'different-agent' | 'different-model' | 'different-plan' | 'different-context' | 'different-announcement' | 'not-replayable'
  rule: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'reference_unknown' | 'reference_ambiguous' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch' | null
  text: string | null
  difference: DifferenceView | null
  missing: string[]
  assumed: string[]
}

export interface YieldBody {
  message?: string | null
}

export interface YieldedAnswer {
  status: 'yielded'
  message: string
  runId: string
  sessionKey: string
}

/** The answer of each operation, by its id. */
export interface Answers {
  acknowledgeAnnouncement: AcknowledgedAnswer
  claimRun: ClaimedAnswer
  clearPreamble: PreambleAnswer
  compareRuns: RunComparisonView
  countEvents: HistogramView
  endRun: EndedAnswer
  explainRun: ExplanationView
  findEvents: SearchView
  getDiff: DiffView
  getHealth: HealthAnswer
  getLogHead: LogHeadView
  getMe: CallerView
  getMoment: MomentView
  getReadiness: ReadinessAnswer
  getRevision: RevisionView
  getRun: RunView | RunMetadataView
  getRunHistory: RunHistoryView
  getRunPrompt: PromptView
  getRunSharedContext: RunSharedContextView
  getRunTranscript: TranscriptView
  getSession: SessionView
  getSessionTree: SessionTreeView
  getSharedContext: SharedContextView
  listAgents: AgentListing
  listAnnouncements: InboxView
  listEvents: EventListView
  listLanes: LaneListView
  listLedger: InboxView
  listRevisions: RevisionListView
  listRunEvents: RunEventListView
  listRuns: RunListView
  listTimeline: TimelineView
  makePageCode: PageCodeAnswer
  patchSharedContext: SharedContextView | SharedSizesView
  prolongClaim: HeartbeatAnswer
  provideTranscript: TranscriptProvidedAnswer
  redriveAnnouncement: RedrivenAnswer
  reportTranscript: ReportedAnswer
  respawn: AcceptedSpawn
  revokePageToken: RevokedAnswer
  sendMessage: ContinuedAnswer | QueuedAnswer | SteeredAnswer | FinishedAnswer
  spawn: AcceptedBatchOfOne | AcceptedSpawn | AcceptedBatch
  startVerification: VerificationStartView
  stopRun: StoppedAnswer
  stopSession: SessionStoppedAnswer
  stopVerification: VerificationStopView
  tradePageCode: PageTokenAnswer
  writePreamble: PreambleAnswer
  yieldSession: YieldedAnswer
}
