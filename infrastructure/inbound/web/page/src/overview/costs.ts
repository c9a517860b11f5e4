// Cost and tokens by agent: those of ended runs, those so far of running ones, and what is left out.

import type { AgentUsageView } from '../api/shapes'
import { count, counted, dollars, tokens, visible } from '../parts/text'

type Used = Pick<AgentUsageView, 'inputTokens' | 'outputTokens' | 'estimatedCostUsd'>
type Priced = Pick<AgentUsageView, 'agentId' | 'estimatedCostUsd' | 'unpricedModels'>

const NAMED_MAX = 3

export interface Part {
  filters: [string, string][]
  text: string
}

/** Return the parts of an agent's figure, each with the runs behind it; running ones only if some used tokens. */
export function partsOf(agentId: string, ended: Used | undefined, running: Used | undefined, since: string): Part[] {
  const ofAgent: [string, string] = ['agentId', agentId]
  return [
    ...(ended === undefined ? [] : [{ filters: [ofAgent, ['endedSince', since]] as Part['filters'], text: `${usedText(ended)} ended` }]),
    ...(running === undefined ? [] : [{ filters: [ofAgent, ['status', 'running']] as Part['filters'], text: `${usedText(running)} running so far` }]),
  ]
}

/** Return true if some or all tokens of an agent have no price. */
export function isPartial({ estimatedCostUsd, unpricedModels }: Priced): boolean {
  return estimatedCostUsd === null || unpricedModels > 0
}

/** Return which tokens and runs the sums leave out; empty if none. */
export function leftOut(agents: readonly Priced[], notSummed: number): string {
  const names = agents.filter(isPartial).map(({ agentId }) => visible(agentId))
  const further = names.length > NAMED_MAX ? ` and ${count(names.length - NAMED_MAX)} more` : ''
  const parts = [
    ...(names.length > 0 ? [`tokens without a price (${names.slice(0, NAMED_MAX).join(', ')}${further})`] : []),
    ...(notSummed > 0 ? [counted(notSummed, 'running run')] : []),
  ]
  return parts.length === 0 ? '' : `Left out: ${parts.join(', ')}.`
}

function usedText({ inputTokens, outputTokens, estimatedCostUsd }: Used): string {
  return estimatedCostUsd === null ? `${tokens(inputTokens + outputTokens)} tokens` : dollars(estimatedCostUsd)
}
