// Human names of sessions: agent and what tells the session apart, in place of the key.

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
