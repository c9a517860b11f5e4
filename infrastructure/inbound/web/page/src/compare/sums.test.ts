import { expect, test } from 'vitest'

import type { RunTotalsView } from '../api/shapes'
import { endedIn, sorted, spawnedIn, sumsByAgent } from './sums'

const totals = (agents: Record<string, number>, usageByAgent: Partial<RunTotalsView['usageByAgent'][number]>[] = []): RunTotalsView =>
  ({ agents, usageByAgent }) as RunTotalsView

test('an agent that cost the most is first, and one that only spawned is there, too', () => {
  const spawned = totals({ writer: 3, idle: 1 })
  const ended = totals({ writer: 2, summer: 9 }, [
    { agentId: 'writer', inputTokens: 10, outputTokens: 2, estimatedCostUsd: 0.5 },
    { agentId: 'summer', inputTokens: 900, outputTokens: 90, estimatedCostUsd: null },
  ])
  expect(sumsByAgent(spawned, ended).map(({ agentId, spawned: begun, ended: over }) => [agentId, begun, over])).toEqual([
    ['writer', 3, 2], ['summer', 0, 9], ['idle', 1, 0],
  ])
})

test('links have both ends of the range and what it is about', () => {
  const range = { after: 'pos:5', until: 'pos:9', of: [['tree', 'main']] as [string, string][] }
  expect(spawnedIn(range)).toEqual([['since', 'pos:5'], ['until', 'pos:9'], ['tree', 'main']])
  expect(endedIn(range, [['status', 'failed']])).toEqual([['status', 'failed'], ['endedSince', 'pos:5'], ['endedUntil', 'pos:9'], ['tree', 'main']])
})

test('the greatest number is first', () => {
  expect(sorted({ b: 1, a: 1, c: 4 })).toEqual([['c', 4], ['a', 1], ['b', 1]])
})
