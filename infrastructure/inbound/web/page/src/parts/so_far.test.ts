import { expect, test } from 'vitest'

import { runningNote, withRunning } from './so_far'

const usage = (agentId: string, inputTokens: number, estimatedCostUsd: number | null, runs = 1) =>
  ({ agentId, runs, inputTokens, outputTokens: 1, estimatedCostUsd, models: 1, unpricedModels: 0 })

test('running runs add to the sums of their agents and to the whole', () => {
  const ended = { inputTokens: 10, outputTokens: 1, estimatedCostUsd: 0.5, usageByAgent: [usage('coder', 10, 0.5)] }
  const running = [usage('coder', 5, 0.25, 2), usage('writer', 7, 2), usage('free', 3, null)]
  expect(withRunning(ended, running)).toEqual({
    inputTokens: 25, outputTokens: 4, estimatedCostUsd: 2.75,
    usageByAgent: [usage('writer', 7, 2), { ...usage('coder', 15, 0.75, 3), outputTokens: 2 }, usage('free', 3, null)],
  })
})

test('without any price there is no cost', () => {
  const ended = { inputTokens: 0, outputTokens: 0, estimatedCostUsd: null, usageByAgent: [] }
  expect(withRunning(ended, [])).toEqual(ended)
  expect(withRunning(ended, [usage('free', 3, null)]).estimatedCostUsd).toBeNull()
})

test('a note tells how many running runs the sums lack', () => {
  expect(runningNote(400, 0)).toBe('with 400 running so far')
  expect(runningNote(1_200, 700)).toBe('with 500 of 1,200 running so far')
  expect(runningNote(3, 3)).toBe('without 3 running')
})
