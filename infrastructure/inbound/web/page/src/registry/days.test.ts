import { expect, test } from 'vitest'

import type { DailyUsageView } from '../api/shapes'
import { daysOf, stacked, sumOf } from './days'

function used(day: string, agentId: string, estimatedCostUsd: number | null, inputTokens = 100): DailyUsageView {
  return { day, agentId, runs: 1, inputTokens, outputTokens: 10, estimatedCostUsd, models: 1, unpricedModels: estimatedCostUsd === null ? 1 : 0 }
}

test('days without usage are there, and the most expensive agent is below', () => {
  const found = daysOf([used('2026-03-03', 'coder', 2), used('2026-03-01', 'coder', 1), used('2026-03-01', 'counter', 4)])
  expect(found).toEqual({
    days: ['2026-03-01', '2026-03-02', '2026-03-03'], isCost: true,
    agents: [{ name: 'counter', values: [4, 0, 0] }, { name: 'coder', values: [1, 0, 2] }],
  })
  expect(stacked(found)).toEqual([[5, 0, 2], [4, 0, 0]])
  expect(sumOf(found, 0)).toBe(5)
})

test('without prices tokens are stacked', () => {
  expect(daysOf([used('2026-03-01', 'coder', null)])).toEqual({ days: ['2026-03-01'], isCost: false, agents: [{ name: 'coder', values: [110] }] })
})

test('of six agents the four most expensive have a name, of five all', () => {
  const six = ['a', 'b', 'c', 'd', 'e', 'f'].map((agent, index) => used('2026-03-01', agent, 10 - index))
  expect(daysOf(six).agents.map(({ name, values }) => [name, values[0]])).toEqual([['a', 10], ['b', 9], ['c', 8], ['d', 7], [null, 11]])
  expect(daysOf(six.slice(0, 5)).agents.map(({ name }) => name)).toEqual(['a', 'b', 'c', 'd', 'e'])
})

test('at most the newest 92 days are drawn', () => {
  const found = daysOf([used('2020-01-01', 'old', 100), used('2026-03-01', 'coder', 1)])
  expect(found.days).toHaveLength(92)
  expect(found.days.at(-1)).toBe('2026-03-01')
  expect(found.agents).toEqual([{ name: 'coder', values: [...Array<number>(91).fill(0), 1] }])
})

test('nothing used is no day', () => {
  expect(daysOf([])).toEqual({ days: [], agents: [], isCost: false })
})
