// Human names in place of keys: of sessions (agent and what tells the session apart) and of rules.

import type { RuleView, RunSummary } from '../api/shapes'
import { shortId } from './text'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export interface HumanName {
  agent: string
  /** What tells the session from others of the agent; empty for its main session. */
  detail: string
}

/**
 * Return the human name of a session key: `agent:summer:subagent:15845153-…` is `summer` and
 * `15845153`, `agent:main:customer-7` is `main` and `customer-7`, `agent:main:main` is `main` alone.
 * A key of another form is its own name.
 */
export function humanName(key: string): HumanName {
  const [kind, agent, ...rest] = key.split(':')
  if (kind !== 'agent' || !agent || rest.length === 0) return { agent: key, detail: '' }
  const parts = rest.filter((part) => part !== 'subagent').map((part) => (UUID.test(part) ? shortId(part) : part))
  const detail = parts.join(':')
  return { agent, detail: detail === 'main' ? '' : detail }
}

/** Return the name of a session for people: `main · harbours`. */
export function nameOfSession(key: string): string {
  const { agent, detail } = humanName(key)
  return detail === '' ? agent : `${agent} · ${detail}`
}

/** A rule that can refuse a spawn. */
export type Rule = NonNullable<RunSummary['rule']>

/** Each rule that can refuse: why it refused, and what it checks. */
const REFUSALS: Record<Rule, [refused: string, checks: string]> = {
  agent_id: ['agent id not valid', 'valid agent id'],
  mode: ['session without a thread', 'mode'],
  depth: ['too deep', 'depth'],
  tools: ['spawn not permitted', 'permission to spawn'],
  active_children: ['too many children at once', 'children at once'],
  require_agent_id: ['no agent named', 'agent named'],
  allow_agents: ['agent not allowed', 'agent allowed'],
  shared_context: ['shared context not accepted', 'shared context'],
  dependency_unknown: ['dependency not found', 'dependencies found'],
  dependency_ambiguous: ['dependency not unique', 'dependencies unique'],
  reference_unknown: ['shared result not found', 'shared results found'],
  reference_ambiguous: ['shared result not unique', 'shared results unique'],
  dependency_cycle: ['dependencies in a circle', 'no circle of dependencies'],
  dependency_failed: ['dependency failed', 'no failed dependency'],
  agent_unknown: ['agent not configured', 'agent configured'],
  sandbox: ['not isolated enough', 'isolation'],
  thinking: ['thinking level not valid', 'thinking level'],
  runtime: ['no usable runtime', 'runtime'],
  credentials: ['credentials missing', 'credentials'],
  workspace: ['folder not usable', 'folder'],
  thread_binding: ['thread not bound', 'thread'],
  context_fork: ['context not forked', 'fork of the context'],
  attachments: ['attachments not accepted', 'attachments'],
  context_engine: ['context engine failed', 'context engine'],
  stopped: ['stopped while prepared', 'not stopped'],
  erased: ['texts erased', 'texts not erased'],
  batch: ['batch not prepared', 'batch'],
}
/** Each rule that only chooses. */
const CHOICES: Record<Exclude<RuleView['rule'], Rule>, string> = {
  dependencies: 'dependencies', context_scripts: 'context scripts', override: 'another agent instead', model: 'model', run_timeout: 'time limit',
  tool_policy: 'tool policy', capabilities: 'capabilities', preamble: 'context preamble',
}
export const RULES = Object.keys(REFUSALS) as Rule[]

const namesOf = (rule: string): [string, string] => {
  if (Object.hasOwn(REFUSALS, rule)) return REFUSALS[rule as Rule]
  const name = Object.hasOwn(CHOICES, rule) ? CHOICES[rule as keyof typeof CHOICES] : rule.replaceAll('_', ' ')
  return [name, name]
}

/** Return why a rule refuses: `agent not allowed`. The rule of a newer server has its key with spaces. */
export const ruleName = (rule: string): string => namesOf(rule)[0]

/** Return what a rule checks or chooses: `agent allowed`. */
export const ruleTopic = (rule: string): string => namesOf(rule)[1]
