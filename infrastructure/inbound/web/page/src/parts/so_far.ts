// Tokens and cost of runs that ended, and so far of those that are running.

import type { AgentUsageView, RunTotalsView } from '../api/shapes'
import { count } from './text'

export type Sums = Pick<RunTotalsView, 'inputTokens' | 'outputTokens' | 'estimatedCostUsd' | 'usageByAgent'>

/** Add the usage of running runs to the sums of ended ones. */
export function withRunning(ended: Sums, running: AgentUsageView[]): Sums {
  const agents = new Map(ended.usageByAgent.map((usage) => [usage.agentId, usage]))
  for (const usage of running) {
    const known = agents.get(usage.agentId)
    agents.set(usage.agentId, known === undefined ? usage : {
      ...usage, ...plus(known, usage), runs: known.runs + usage.runs,
      models: Math.max(known.models, usage.models), unpricedModels: Math.max(known.unpricedModels, usage.unpricedModels),
    })
  }
  const usageByAgent = [...agents.values()].sort((one, other) => (other.estimatedCostUsd ?? 0) - (one.estimatedCostUsd ?? 0))
  return { ...running.reduce(plus, ended), usageByAgent }
}

/** Say for how many of the running runs sums have the usage so far. */
export function runningNote(running: number, notSummed: number): string {
  if (notSummed >= running) return `without ${count(running)} running`
  return `with ${notSummed > 0 ? `${count(running - notSummed)} of ` : ''}${count(running)} running so far`
}

/** Sum tokens and cost; those without a price are left out of the cost. */
export function sumOf(parts: Used[]): Used {
  return parts.reduce(plus, { inputTokens: 0, outputTokens: 0, estimatedCostUsd: null })
}

type Used = Omit<Sums, 'usageByAgent'>

function plus(one: Used, other: Used): Used {
  const costs = [one.estimatedCostUsd, other.estimatedCostUsd].filter((cost) => cost !== null)
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    estimatedCostUsd: costs.length === 0 ? null : costs.reduce((sum, cost) => sum + cost, 0),
  }
}
