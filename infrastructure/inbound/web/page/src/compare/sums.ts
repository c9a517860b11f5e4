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
  agentId: string
  spawned: number
  ended: number
  inputTokens: number
  outputTokens: number
  estimatedCostUsd: number | null
}

/** The sums of each agent, those with the greatest cost first, then those with the most tokens and runs. */
export function sumsByAgent(spawned: RunTotalsView, ended: RunTotalsView): AgentSums[] {
  const sums = new Map<string, AgentSums>()
  const of = (agentId: string): AgentSums => {
    const known = sums.get(agentId) ?? { agentId, spawned: 0, ended: 0, inputTokens: 0, outputTokens: 0, estimatedCostUsd: null }
    sums.set(agentId, known)
    return known
  }
  for (const [agentId, runs] of Object.entries(spawned.agents)) of(agentId).spawned = runs
  for (const [agentId, runs] of Object.entries(ended.agents)) of(agentId).ended = runs
  for (const { agentId, inputTokens, outputTokens, estimatedCostUsd } of ended.usageByAgent) {
    Object.assign(of(agentId), { inputTokens, outputTokens, estimatedCostUsd })
  }
  const weight = (one: AgentSums): number[] => [one.estimatedCostUsd ?? 0, one.inputTokens + one.outputTokens, one.spawned + one.ended]
  return [...sums.values()].sort((one, other) => {
    const [left, right] = [weight(one), weight(other)]
    const place = left.findIndex((value, index) => value !== right[index])
    return place < 0 ? (one.agentId < other.agentId ? -1 : 1) : right[place]! - left[place]!
  })
}

/** The numbers of a record, the greatest first. */
export function sorted(counts: Record<string, number>): [string, number][] {
  return Object.entries(counts).sort(([one, left], [other, right]) => right - left || (one < other ? -1 : 1))
}
