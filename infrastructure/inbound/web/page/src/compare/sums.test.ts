import { expect, test } from 'vitest'

import type { RunTotalsView } from '../api/shapes'
import { endedIn, sorted, spawnedIn, sumsByAgent } from './sums'

type Statuses = RunTotalsView['statusesByAgent']

/** `unnamed` are refused runs that named no valid agent. */
function totals(statusesByAgent: Statuses, usageByAgent: Partial<RunTotalsView['usageByAgent'][number]>[] = [], unnamed = 0): RunTotalsView {
  const statuses: Record<string, number> = unnamed > 0 ? { refused: unnamed } : {}
  const agents: Record<string, number> = {}
  for (const [agent, counts] of Object.entries(statusesByAgent)) {
    for (const [status, runs] of Object.entries(counts)) {
      agents[agent] = (agents[agent] ?? 0) + runs
      statuses[status] = (statuses[status] ?? 0) + runs
    }
  }
  const runs = Object.values(statuses).reduce((sum, of) => sum + of, 0)
  return { runs, statuses, agents, statusesByAgent, usageByAgent } as RunTotalsView
}

test('an agent that cost the most is first, and one that only spawned is there, too', () => {
  const spawned = totals({ writer: { running: 3 }, idle: { queued: 1 } })
  const ended = totals({ writer: { done: 1, failed: 1 }, summer: { done: 8, timeout: 1 } }, [
    { agentId: 'writer', inputTokens: 10, outputTokens: 2, estimatedCostUsd: 0.5 },
    { agentId: 'summer', inputTokens: 900, outputTokens: 90, estimatedCostUsd: null },
  ])
  expect(sumsByAgent(spawned, ended).map(({ agentId, spawned: begun, statuses }) => [agentId, begun, statuses])).toEqual([
    ['writer', 3, { done: 1, failed: 1 }], ['summer', 0, { done: 8, timeout: 1 }], ['idle', 1, {}],
  ])
})

test('the last row has the runs of no agent, so that each column sums to its figure', () => {
  const both = totals({ writer: { done: 2, refused: 1 } }, [], 3)
  expect(sumsByAgent(both, both)).toMatchObject([
    { agentId: 'writer', spawned: 3, statuses: { done: 2, refused: 1 } },
    { agentId: null, spawned: 3, statuses: { refused: 3 } },
  ])
  expect(sumsByAgent(both, both)[1]!.statuses).toEqual({ refused: 3 })
})

test('links have both ends of the range and what it is about', () => {
  const range = { after: 'pos:5', until: 'pos:9', of: [['tree', 'main']] as [string, string][] }
  expect(spawnedIn(range)).toEqual([['since', 'pos:5'], ['until', 'pos:9'], ['tree', 'main']])
  expect(endedIn(range, [['status', 'failed']])).toEqual([['status', 'failed'], ['endedSince', 'pos:5'], ['endedUntil', 'pos:9'], ['tree', 'main']])
})

test('the greatest number is first', () => {
  expect(sorted({ b: 1, a: 1, c: 4 })).toEqual([['c', 4], ['a', 1], ['b', 1]])
})
