import { expect, test } from 'vitest'

import { leftOut, partsOf } from './costs'

const used = (estimatedCostUsd: number | null) => ({ inputTokens: 900, outputTokens: 100, estimatedCostUsd, runs: 2 })

test('the figure of an agent leads to its ended and to its running runs', () => {
  expect(partsOf('writer', used(21.88), used(38.27), '1h')).toEqual([
    { filters: [['agentId', 'writer'], ['endedSince', '1h']], text: '$21.88 ended' },
    { filters: [['agentId', 'writer'], ['status', 'running']], text: '$38.27 running so far' },
  ])
  expect(partsOf('writer', undefined, used(null), '1h').map(({ text }) => text)).toEqual(['1,000 tokens running so far'])
})

test('sums name what they leave out', () => {
  const agent = (agentId: string, estimatedCostUsd: number | null, unpricedModels = 0) => ({ agentId, estimatedCostUsd, unpricedModels })
  expect(leftOut([agent('main', 1)], 0)).toBe('')
  expect(leftOut([agent('main', 1), agent('writer', 2, 1)], 0)).toBe('Left out: tokens without a price (writer).')
  expect(leftOut(['a', 'b', 'c', 'd'].map((id) => agent(id, null)), 1)).toBe('Left out: tokens without a price (a, b, c and 1 more), 1 running run.')
})
