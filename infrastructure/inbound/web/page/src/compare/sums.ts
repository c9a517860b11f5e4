// What happened in a range, by agent; and the links to the runs behind each figure.

import type { RunTotalsView } from '../api/shapes'

export type Filters = [string, string][]

/** The positions or moments of a range, and which runs it is about. */
export interface Range {
  after: string
  until: string
  /** Filters that narrow the runs: the tree or the requester. */
  of: Filters
}

/** Filters for the runs that were spawned in the range. */
export function spawnedIn({ after, until, of }: Range, more: Filters = []): Filters {
  return [...more, ['since', after], ['until', until], ...of]
}

/** Filters for the runs that ended or were refused in the range. */
export function endedIn({ after, until, of }: Range, more: Filters = []): Filters {
  return [...more, ['endedSince', after], ['endedUntil', until], ...of]
}

export interface AgentSums {
  /** Null for the runs of all others: refused because they named no valid agent, or of agents with few runs. */
  agentId: string | null
  spawned: number
  /** Of those that ended or were refused. */
  statuses: Record<string, number>
  inputTokens: number
  outputTokens: number
  estimatedCostUsd: number | null
}

/** The sums of each agent, those with the greatest cost first, then those with the most tokens and runs; last
 * the runs of all others, so that each column sums to its total. */
export function sumsByAgent(spawned: RunTotalsView, ended: RunTotalsView): AgentSums[] {
  const sums = new Map<string, AgentSums>()
  const of = (agentId: string): AgentSums => {
    const known = sums.get(agentId) ?? { agentId, spawned: 0, statuses: {}, inputTokens: 0, outputTokens: 0, estimatedCostUsd: null }
    sums.set(agentId, known)
    return known
  }
  for (const [agentId, runs] of Object.entries(spawned.agents)) of(agentId).spawned = runs
  for (const [agentId, statuses] of Object.entries(ended.statusesByAgent)) of(agentId).statuses = statuses
  for (const { agentId, inputTokens, outputTokens, estimatedCostUsd } of ended.usageByAgent) {
    Object.assign(of(agentId), { inputTokens, outputTokens, estimatedCostUsd })
  }
  const weight = (one: AgentSums): number[] => [one.estimatedCostUsd ?? 0, one.inputTokens + one.outputTokens, one.spawned + total(one.statuses)]
  const agents = [...sums.values()].sort((one, other) => {
    const [left, right] = [weight(one), weight(other)]
    const place = left.findIndex((value, index) => value !== right[index])
    return place < 0 ? (one.agentId! < other.agentId! ? -1 : 1) : right[place]! - left[place]!
  })
  const statuses = Object.fromEntries(
    Object.entries(ended.statuses)
      .map(([status, runs]): [string, number] => [status, runs - agents.reduce((sum, one) => sum + (one.statuses[status] ?? 0), 0)])
      .filter(([, runs]) => runs > 0),
  )
  const others: AgentSums = { agentId: null, spawned: spawned.runs - total(spawned.agents), statuses, inputTokens: 0, outputTokens: 0, estimatedCostUsd: null }
  return others.spawned > 0 || total(statuses) > 0 ? [...agents, others] : agents
}

function total(counts: Record<string, number>): number {
  return Object.values(counts).reduce((sum, of) => sum + of, 0)
}

/** The numbers of a record, the greatest first. */
export function sorted(counts: Record<string, number>): [string, number][] {
  return Object.entries(counts).sort(([one, left], [other, right]) => right - left || (one < other ? -1 : 1))
}
