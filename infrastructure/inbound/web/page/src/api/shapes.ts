// Written by `make docs` from the description of the HTTP API: what the page asks for.

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

export interface ActivatedRevisionView {
  revision: number
  position: number
  activatedAt: string
  activatedBy: string
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

export interface AgentUsageView {
  runs: number
  inputTokens: number
  outputTokens: number
  estimatedCostUsd: number | null
  models: number
  unpricedModels: number
  agentId: string
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

export interface CallerView {
  kind: string
  token: string | null
  session: string | null
  runId: string | null
  scopes: ('spawn' | 'read' | 'content' | 'control' | 'worker' | 'admin')[]
  patterns: string[]
}

export interface ComparedDecisionView {
  step: string
  rule: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'reference_unknown' | 'reference_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch' | 'dependencies' | 'context_scripts' | 'override' | 'model' | 'run_timeout' | 'tool_policy' | 'capabilities' | 'preamble'
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

export interface DailyUsageView {
  runs: number
  inputTokens: number
  outputTokens: number
  estimatedCostUsd: number | null
  models: number
  unpricedModels: number
  agentId: string
  day: string
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
  texts: FailureText | ReasonText | ScriptFailureTexts
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

export interface FailuresView {
  cause: string
  error: string
  newestAt: string
  runs: number
  statuses: Record<string, number>
  agents: Record<string, number>
  runIds: string[]
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

export interface LiveRunsView {
  preparing: number
  waiting: number
  queued: number
  running: number
  waits: WaitView[]
  parkedAnnouncements: number
  parkedDeliveries: number
  usageByAgent: AgentUsageView[]
  runningNotSummed: number
  cut: boolean
  runsCut: boolean
  parkedCut: boolean
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
  rule?: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'reference_unknown' | 'reference_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch'
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

export interface ReasonText {
  reason: string | null
}

export interface RedriveBody {
  reason: string
  webhook?: string | null
  hook?: 'subagentSpawned' | 'subagentEnded' | 'onSubagentEnded' | null
}

export interface RedriveManyBody {
  reason: string
  webhook?: string | null
  after?: number
  until?: number | null
  limit?: number
}

export interface RedriveRefusal {
  runId: string
  code: 'erased'
  detail: string
}

export interface RedrivenAnswer {
  runId: string
  webhooks: string[]
  hooks: string[]
}

export interface RedrivenItem {
  runId: string
  webhooks: string[]
}

export interface RedrivenManyAnswer {
  redriven: RedrivenItem[]
  refused: RedriveRefusal[]
  moreAfter: number | null
  until: number
}

export interface RefusalView {
  rule: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'reference_unknown' | 'reference_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch'
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
  taskPreview: string | null
  error: string | null
  rule: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'reference_unknown' | 'reference_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch' | null
  childSessionKey: string | null
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
  rule: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'reference_unknown' | 'reference_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch' | 'dependencies' | 'context_scripts' | 'override' | 'model' | 'run_timeout' | 'tool_policy' | 'capabilities' | 'preamble'
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
  parentRunId: string | null
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
  rule: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'reference_unknown' | 'reference_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch' | null
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
  stopRequestedBy: string | null
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
  rule: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'reference_unknown' | 'reference_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch' | null
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
  errorCause?: string | null
}

export interface RunTotalsView {
  runs: number
  inputTokens: number
  outputTokens: number
  estimatedCostUsd: number | null
  models: number
  unpricedModels: number
  statuses: Record<string, number>
  agents: Record<string, number>
  statusesByAgent: Record<string, Record<string, number>>
  rules: Record<string, number>
  usageByAgent: AgentUsageView[]
  usageByDay: DailyUsageView[]
  runningNotSummed: number
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
  parentRunId: string | null
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
  rule: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'reference_unknown' | 'reference_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch' | null
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
  stopRequestedBy: string | null
  stopReason: string | null
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
  runningNotSummed: number
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

export interface SpawnRequest {
  requester: RequesterBody
  task: string | string[]
  label?: string | null
  agentId?: string | null
  model?: string | null
  thinking?: string | null
  runTimeoutSeconds?: number | null
  sandbox?: 'inherit' | 'require'
  context?: 'isolated' | 'fork' | null
  lightContext?: boolean
  expectsCompletionMessage?: boolean
  thread?: boolean
  mode?: 'run' | 'session' | null
  cleanup?: 'delete' | 'keep' | null
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

export interface SummaryView {
  after: number
  until: number
  fromAt: string | null
  toAt: string | null
  spawned: RunTotalsView
  ended: RunTotalsView
  failures: FailuresView[]
  furtherCauses: number
  revisions: ActivatedRevisionView[] | null
  live: LiveRunsView
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

export interface TranscriptChoice {
  upTo: number
}

export interface TranscriptEntryView {
  sequence: number
  recordedAt: string
  kind: string
  body: Record<string, unknown>
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
  own: UsageTotalsView
  total: UsageTotalsView
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
  taskPreview: string | null
  error: string | null
  inputTokens: number | null
  outputTokens: number | null
  estimatedCostUsd: number | null
}

export interface TreeUsageListView {
  items: TreeUsageView[]
}

export interface TreeUsageView {
  runs: number
  inputTokens: number
  outputTokens: number
  estimatedCostUsd: number | null
  models: number
  unpricedModels: number
  tree: string
  runningNotSummed: number
  countedTo: number | null
}

export interface UsageTotalsView {
  runs: number
  inputTokens: number
  outputTokens: number
  estimatedCostUsd: number | null
  models: number
  unpricedModels: number
}

export interface UsageView {
  inputTokens: number
  outputTokens: number
  totalTokens: number
  cacheReadTokens: number | null
  cacheWriteTokens: number | null
  models: ModelUsageView[]
  unpricedModels: number
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

export interface WaitView {
  reason: 'runs' | 'slot' | 'claim'
  lane: string | null
  depth: number | null
  runs: number
  runIds: string[]
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
  rule: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'reference_unknown' | 'reference_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch' | null
  text: string | null
  difference: DifferenceView | null
  missing: string[]
  assumed: string[]
}

/** The method and the path of each operation, by its id. */
export const ROUTES = {
  compareRuns: 'GET /v1/runs/{runId}/compare',
  countEvents: 'GET /v1/events/histogram',
  explainRun: 'GET /v1/runs/{runId}/explain',
  getDiff: 'GET /v1/diff',
  getLogHead: 'GET /v1/log',
  getMe: 'GET /v1/me',
  getMoment: 'GET /v1/moments',
  getRevision: 'GET /v1/config/revisions/{revision}',
  getRun: 'GET /v1/runs/{runId}',
  getRunHistory: 'GET /v1/runs/{runId}/history',
  getRunPrompt: 'GET /v1/runs/{runId}/prompt',
  getRunSharedContext: 'GET /v1/runs/{runId}/shared-context',
  getRunTranscript: 'GET /v1/runs/{runId}/transcript',
  getSession: 'GET /v1/sessions/{key}',
  getSessionTree: 'GET /v1/sessions/{key}/tree',
  getSharedContext: 'GET /v1/sessions/{key}/shared-context',
  getSummary: 'GET /v1/summary',
  listAgents: 'GET /v1/agents',
  listEvents: 'GET /v1/events',
  listLanes: 'GET /v1/lanes',
  listLedger: 'GET /v1/announcements',
  listRevisions: 'GET /v1/config/revisions',
  listRunEvents: 'GET /v1/runs/{runId}/events',
  listRuns: 'GET /v1/runs',
  listTimeline: 'GET /v1/timeline',
  listTreeUsage: 'GET /v1/trees/usage',
  redriveAnnouncement: 'POST /v1/announcements/{id}/redrive',
  redriveAnnouncements: 'POST /v1/announcements/redrive',
  respawn: 'POST /v1/runs/{runId}/respawn',
  revokePageToken: 'DELETE /v1/page-tokens/current',
  sendMessage: 'POST /v1/runs/{runId}/messages',
  spawn: 'POST /v1/spawns',
  startVerification: 'POST /v1/log/verifications',
  stopRun: 'POST /v1/runs/{runId}/stop',
  stopSession: 'POST /v1/sessions/{key}/stop',
  stopVerification: 'POST /v1/log/verifications/current/stop',
  tradePageCode: 'POST /v1/page-tokens',
  whatIf: 'POST /v1/what-if',
} as const

/** The parameters of each operation, in its path and behind it. Null is not sent. */
export interface Parameters {
  compareRuns: {
    at?: string | null
    minPosition?: number | null
    runId: string
    with: string
  }
  countEvents: {
    actor?: string | null
    buckets?: number | null
    by?: 'position' | 'time' | null
    from?: string | null
    minPosition?: number | null
    runId?: string | null
    to?: string | null
    tree?: string | null
    types?: 'AgentOverridden' | 'AnnouncementAcknowledged' | 'ArchiveScheduled' | 'ChildAdmitted' | 'ChildReleased' | 'ChildSettled' | 'ChildrenReported' | 'ConfigurationActivated' | 'ContinuationFailed' | 'ContinuationPlanned' | 'DependencyMet' | 'DescendantsSettled' | 'EffectAttempted' | 'EffectParked' | 'EffectRedriven' | 'MessageQueued' | 'MessageReceived' | 'MessagesDropped' | 'PreambleChanged' | 'PreparationResumed' | 'PreparationStarted' | 'RunAnnounced' | 'RunArchived' | 'RunClaimed' | 'RunContinued' | 'RunEnded' | 'RunQueued' | 'RunStarted' | 'RunWaits' | 'ScriptsResolved' | 'SessionClosed' | 'SessionContinued' | 'SessionCreated' | 'SessionObserved' | 'SharedContextChanged' | 'SharedContextInherited' | 'SpawnRefused' | 'SpawnRequested' | 'StepBegun' | 'StepTaken' | 'StopRequested' | 'ToolRefused' | 'TranscriptProvided' | 'YieldRequested' | ('AgentOverridden' | 'AnnouncementAcknowledged' | 'ArchiveScheduled' | 'ChildAdmitted' | 'ChildReleased' | 'ChildSettled' | 'ChildrenReported' | 'ConfigurationActivated' | 'ContinuationFailed' | 'ContinuationPlanned' | 'DependencyMet' | 'DescendantsSettled' | 'EffectAttempted' | 'EffectParked' | 'EffectRedriven' | 'MessageQueued' | 'MessageReceived' | 'MessagesDropped' | 'PreambleChanged' | 'PreparationResumed' | 'PreparationStarted' | 'RunAnnounced' | 'RunArchived' | 'RunClaimed' | 'RunContinued' | 'RunEnded' | 'RunQueued' | 'RunStarted' | 'RunWaits' | 'ScriptsResolved' | 'SessionClosed' | 'SessionContinued' | 'SessionCreated' | 'SessionObserved' | 'SharedContextChanged' | 'SharedContextInherited' | 'SpawnRefused' | 'SpawnRequested' | 'StepBegun' | 'StepTaken' | 'StopRequested' | 'ToolRefused' | 'TranscriptProvided' | 'YieldRequested')[] | null
  }
  explainRun: {
    at?: string | null
    minPosition?: number | null
    runId: string
  }
  getDiff: {
    cursor?: string | null
    from: string
    limit?: number | null
    minPosition?: number | null
    runId?: string | null
    session?: string | null
    to: string
    tree?: string | null
  }
  getLogHead: {
    at?: string | null
    minPosition?: number | null
  }
  getMe: {
    minPosition?: number | null
  }
  getMoment: {
    around?: number | null
    at?: string | null
    minPosition?: number | null
  }
  getRevision: {
    at?: string | null
    minPosition?: number | null
    revision: number
  }
  getRun: {
    at?: string | null
    minPosition?: number | null
    runId: string
    until?: 'started' | 'ended' | 'announced' | 'archived' | null
    version?: number | null
    wait?: string | null
  }
  getRunHistory: {
    after?: number | null
    at?: string | null
    field?: string | string[] | null
    limit?: number | null
    minPosition?: number | null
    runId: string
  }
  getRunPrompt: {
    at?: string | null
    minPosition?: number | null
    runId: string
  }
  getRunSharedContext: {
    at?: string | null
    minPosition?: number | null
    runId: string
  }
  getRunTranscript: {
    after?: number | null
    at?: string | null
    last?: number | null
    limit?: number | null
    minPosition?: number | null
    runId: string
    tools?: boolean | null
    wait?: string | null
  }
  getSession: {
    at?: string | null
    key: string
    minPosition?: number | null
  }
  getSessionTree: {
    at?: string | null
    depth?: number | null
    key: string
    limit?: number | null
    minPosition?: number | null
  }
  getSharedContext: {
    at?: string | null
    key: string
    minPosition?: number | null
  }
  getSummary: {
    agentId?: string | string[] | null
    from?: string | null
    minPosition?: number | null
    to?: string | null
    tree?: string | null
  }
  listAgents: {
    at?: string | null
    minPosition?: number | null
    requester?: string | null
  }
  listEvents: {
    actor?: string | null
    after?: number | null
    at?: string | null
    before?: number | null
    limit?: number | null
    minPosition?: number | null
    order?: 'asc' | 'desc' | null
    runId?: string | null
    tree?: string | null
    types?: 'AgentOverridden' | 'AnnouncementAcknowledged' | 'ArchiveScheduled' | 'ChildAdmitted' | 'ChildReleased' | 'ChildSettled' | 'ChildrenReported' | 'ConfigurationActivated' | 'ContinuationFailed' | 'ContinuationPlanned' | 'DependencyMet' | 'DescendantsSettled' | 'EffectAttempted' | 'EffectParked' | 'EffectRedriven' | 'MessageQueued' | 'MessageReceived' | 'MessagesDropped' | 'PreambleChanged' | 'PreparationResumed' | 'PreparationStarted' | 'RunAnnounced' | 'RunArchived' | 'RunClaimed' | 'RunContinued' | 'RunEnded' | 'RunQueued' | 'RunStarted' | 'RunWaits' | 'ScriptsResolved' | 'SessionClosed' | 'SessionContinued' | 'SessionCreated' | 'SessionObserved' | 'SharedContextChanged' | 'SharedContextInherited' | 'SpawnRefused' | 'SpawnRequested' | 'StepBegun' | 'StepTaken' | 'StopRequested' | 'ToolRefused' | 'TranscriptProvided' | 'YieldRequested' | ('AgentOverridden' | 'AnnouncementAcknowledged' | 'ArchiveScheduled' | 'ChildAdmitted' | 'ChildReleased' | 'ChildSettled' | 'ChildrenReported' | 'ConfigurationActivated' | 'ContinuationFailed' | 'ContinuationPlanned' | 'DependencyMet' | 'DescendantsSettled' | 'EffectAttempted' | 'EffectParked' | 'EffectRedriven' | 'MessageQueued' | 'MessageReceived' | 'MessagesDropped' | 'PreambleChanged' | 'PreparationResumed' | 'PreparationStarted' | 'RunAnnounced' | 'RunArchived' | 'RunClaimed' | 'RunContinued' | 'RunEnded' | 'RunQueued' | 'RunStarted' | 'RunWaits' | 'ScriptsResolved' | 'SessionClosed' | 'SessionContinued' | 'SessionCreated' | 'SessionObserved' | 'SharedContextChanged' | 'SharedContextInherited' | 'SpawnRefused' | 'SpawnRequested' | 'StepBegun' | 'StepTaken' | 'StopRequested' | 'ToolRefused' | 'TranscriptProvided' | 'YieldRequested')[] | null
  }
  listLanes: {
    at?: string | null
    limit?: number | null
    minPosition?: number | null
  }
  listLedger: {
    after?: number | null
    at?: string | null
    limit?: number | null
    minPosition?: number | null
    state?: 'parked' | 'due' | 'delivered' | 'acknowledged' | null
  }
  listRevisions: {
    at?: string | null
    cursor?: string | null
    limit?: number | null
    minPosition?: number | null
  }
  listRunEvents: {
    after?: number | null
    at?: string | null
    limit?: number | null
    minPosition?: number | null
    runId: string
  }
  listRuns: {
    agentId?: string | string[] | null
    at?: string | null
    cause?: string | null
    cursor?: string | null
    depth?: number | null
    endedSince?: string | null
    endedUntil?: string | null
    label?: string | string[] | null
    labelPrefix?: string | string[] | null
    limit?: number | null
    minPosition?: number | null
    order?: 'asc' | 'desc' | null
    outcome?: 'success' | 'error' | 'timeout' | 'stopped' | 'unknown' | ('success' | 'error' | 'timeout' | 'stopped' | 'unknown')[] | null
    q?: string | null
    requester?: string | null
    respawnedFrom?: string | null
    rule?: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'reference_unknown' | 'reference_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch' | null
    since?: string | null
    stage?: 'requested' | 'scripts-resolved' | 'overridden' | 'session-created' | 'queued' | 'started' | 'ended' | 'announced' | 'archived' | 'refused' | ('requested' | 'scripts-resolved' | 'overridden' | 'session-created' | 'queued' | 'started' | 'ended' | 'announced' | 'archived' | 'refused')[] | null
    status?: 'preparing' | 'waiting' | 'queued' | 'running' | 'done' | 'failed' | 'timeout' | 'stopped' | 'unknown' | 'refused' | ('preparing' | 'waiting' | 'queued' | 'running' | 'done' | 'failed' | 'timeout' | 'stopped' | 'unknown' | 'refused')[] | null
    totals?: boolean | null
    tree?: string | null
    until?: string | null
  }
  listTimeline: {
    agentId?: string | string[] | null
    at?: string | null
    buckets?: number | null
    cursor?: string | null
    depth?: number | null
    endedSince?: string | null
    endedUntil?: string | null
    from?: string | null
    label?: string | string[] | null
    labelPrefix?: string | string[] | null
    limit?: number | null
    minPosition?: number | null
    outcome?: 'success' | 'error' | 'timeout' | 'stopped' | 'unknown' | ('success' | 'error' | 'timeout' | 'stopped' | 'unknown')[] | null
    requester?: string | null
    respawnedFrom?: string | null
    rule?: 'agent_id' | 'mode' | 'depth' | 'tools' | 'active_children' | 'require_agent_id' | 'allow_agents' | 'shared_context' | 'dependency_unknown' | 'dependency_ambiguous' | 'reference_unknown' | 'reference_ambiguous' | 'dependency_cycle' | 'dependency_failed' | 'agent_unknown' | 'sandbox' | 'thinking' | 'runtime' | 'credentials' | 'workspace' | 'thread_binding' | 'context_fork' | 'attachments' | 'context_engine' | 'stopped' | 'erased' | 'batch' | null
    since?: string | null
    stage?: 'requested' | 'scripts-resolved' | 'overridden' | 'session-created' | 'queued' | 'started' | 'ended' | 'announced' | 'archived' | 'refused' | ('requested' | 'scripts-resolved' | 'overridden' | 'session-created' | 'queued' | 'started' | 'ended' | 'announced' | 'archived' | 'refused')[] | null
    status?: 'preparing' | 'waiting' | 'queued' | 'running' | 'done' | 'failed' | 'timeout' | 'stopped' | 'unknown' | 'refused' | ('preparing' | 'waiting' | 'queued' | 'running' | 'done' | 'failed' | 'timeout' | 'stopped' | 'unknown' | 'refused')[] | null
    to?: string | null
    tree?: string | null
    until?: string | null
  }
  listTreeUsage: {
    at?: string | null
    minPosition?: number | null
    tree: string | string[]
  }
  redriveAnnouncement: {
    id: string
  }
  redriveAnnouncements: Record<string, never>
  respawn: {
    runId: string
  }
  revokePageToken: Record<string, never>
  sendMessage: {
    runId: string
  }
  spawn: Record<string, never>
  startVerification: Record<string, never>
  stopRun: {
    runId: string
  }
  stopSession: {
    key: string
  }
  stopVerification: Record<string, never>
  tradePageCode: Record<string, never>
  whatIf: Record<string, never>
}

/** The body of each operation that does something; one that takes none gets {}. */
export interface Bodies {
  redriveAnnouncement: RedriveBody
  redriveAnnouncements: RedriveManyBody
  respawn: RespawnBody
  revokePageToken: Record<string, never>
  sendMessage: MessageBody
  spawn: SpawnRequest
  startVerification: Record<string, never>
  stopRun: StopBody
  stopSession: StopBody
  stopVerification: Record<string, never>
  tradePageCode: PageTokenBody
  whatIf: WhatIfBody
}

/** The answer of each operation; where it comes line by line, each line. */
export interface Answers {
  compareRuns: RunComparisonView
  countEvents: HistogramView
  explainRun: ExplanationView
  getDiff: DiffView
  getLogHead: LogHeadView
  getMe: CallerView
  getMoment: MomentView
  getRevision: RevisionView
  getRun: RunView | RunMetadataView
  getRunHistory: RunHistoryView
  getRunPrompt: PromptView
  getRunSharedContext: RunSharedContextView
  getRunTranscript: TranscriptView
  getSession: SessionView
  getSessionTree: SessionTreeView
  getSharedContext: SharedContextView
  getSummary: SummaryView
  listAgents: AgentListing
  listEvents: EventListView
  listLanes: LaneListView
  listLedger: InboxView
  listRevisions: RevisionListView
  listRunEvents: RunEventListView
  listRuns: RunListView
  listTimeline: TimelineView
  listTreeUsage: TreeUsageListView
  redriveAnnouncement: RedrivenAnswer
  redriveAnnouncements: RedrivenManyAnswer
  respawn: AcceptedSpawn
  revokePageToken: RevokedAnswer
  sendMessage: ContinuedAnswer | QueuedAnswer | SteeredAnswer | FinishedAnswer
  spawn: AcceptedBatchOfOne | AcceptedSpawn | AcceptedBatch
  startVerification: VerificationStartView
  stopRun: StoppedAnswer
  stopSession: SessionStoppedAnswer
  stopVerification: VerificationStopView
  tradePageCode: PageTokenAnswer
  whatIf: WhatIfVerdictView | WhatIfProgressView | WhatIfTotalsView | WhatIfFailureView
}
