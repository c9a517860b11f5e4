// How the overview names a run: agent, then label or task.

import type { RunSummary } from '../api/shapes'
import { shortId, visible } from '../parts/text'

const NAME_CHARS_MAX = 120

/** Return `counter · tides`: the agent, and label, first line of the task or short id. */
export function runName(run: Pick<RunSummary, 'runId' | 'agentId' | 'requestedAgentId' | 'label' | 'taskPreview'>): string {
  const agent = run.agentId ?? run.requestedAgentId
  const [line = ''] = (run.taskPreview ?? '').trim().split('\n')
  const detail = run.label ?? (line === '' ? shortId(run.runId) : line.slice(0, NAME_CHARS_MAX))
  return visible(agent === null ? detail : `${agent} · ${detail}`)
}

/** Return `main 12, tides 9`: the agents of a group of runs, those with the most runs first. */
export function agentsText(agents: Record<string, number>, most = 3): string {
  const sorted = Object.entries(agents).sort(([, one], [, other]) => other - one)
  const shown = sorted.slice(0, most).map(([agent, runs]) => (sorted.length === 1 ? visible(agent) : `${visible(agent)} ${runs}`))
  return sorted.length > most ? `${shown.join(', ')} and ${sorted.length - most} more` : shown.join(', ')
}
