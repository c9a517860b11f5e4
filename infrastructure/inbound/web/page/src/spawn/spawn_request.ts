// The body of a spawn from the fields of the form, and where the problems of an answer belong.

import { isLongNumber, readJson } from '../api/json'
import type { Bodies } from '../api/shapes'

export interface SpawnFields {
  agent: string
  task: string
  label: string
  /** JSON object; empty for none. */
  sharedContext: string
  requester: string
  model: string
  /** Seconds; empty for the configured timeout. */
  timeout: string
}
export type FieldName = keyof SpawnFields
export type FieldProblems = Partial<Record<FieldName, string>>
export type SpawnBody = Bodies['spawn']

/** Return the body, or the problems by field. Empty fields are left out: the server has defaults. */
export function spawnBody(fields: SpawnFields): { body: SpawnBody; problems: null } | { body: null; problems: FieldProblems } {
  const problems: FieldProblems = {}
  if (fields.task.trim() === '') problems.task = 'Write what the child is to do.'
  const shared = sharedContextOf(fields.sharedContext)
  if (shared === null) problems.sharedContext = 'Not a JSON object. Example: {"goal": "a short summary"}'
  const seconds = fields.timeout.trim()
  if (!/^\d{0,9}$/.test(seconds)) problems.timeout = 'Write whole seconds, for example 600.'
  if (shared === null || Object.keys(problems).length > 0) return { body: null, problems }
  const agentId = fields.agent.trim()
  const label = fields.label.trim()
  const model = fields.model.trim()
  return {
    problems: null,
    body: {
      requester: { sessionKey: fields.requester.trim() || 'main' },
      task: fields.task,
      ...(agentId === '' ? {} : { agentId }), ...(label === '' ? {} : { label }), ...(model === '' ? {} : { model }),
      ...(seconds === '' ? {} : { runTimeoutSeconds: Number(seconds) }),
      ...(shared === undefined ? {} : { sharedContext: shared }),
    },
  }
}

/** Return the values to share; undefined if none are given, null if the text is not a JSON object. */
function sharedContextOf(text: string): Record<string, unknown> | undefined | null {
  if (text.trim() === '') return undefined
  try {
    const value = readJson(text)
    return value === null || typeof value !== 'object' || Array.isArray(value) || isLongNumber(value) ? null : (value as Record<string, unknown>)
  } catch {
    return null
  }
}

const FIELD_OF_KEY: Record<string, FieldName> = {
  agentId: 'agent', task: 'task', label: 'label', sharedContext: 'sharedContext', requester: 'requester', model: 'model', runTimeoutSeconds: 'timeout',
}
const FIELD_OF_RULE: Partial<Record<string, FieldName>> = {
  agent_id: 'agent', require_agent_id: 'agent', allow_agents: 'agent', agent_unknown: 'agent', shared_context: 'sharedContext',
}

/** Return the problems of a refused request by field. Those that belong to no field are left out. */
export function fieldProblems(problem: { rule?: string; detail?: string; errors?: { pointer?: string; detail?: string }[] }): FieldProblems {
  const found: FieldProblems = {}
  for (const { pointer = '', detail = '' } of problem.errors ?? []) {
    const field = FIELD_OF_KEY[pointer.split('/')[1] ?? '']
    if (field !== undefined) found[field] ??= detail
  }
  const ruled = FIELD_OF_RULE[problem.rule ?? '']
  if (ruled !== undefined && problem.detail) found[ruled] ??= problem.detail
  return found
}
