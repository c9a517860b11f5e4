import { expect, test } from 'vitest'

import { tookMs } from './took'

const at = (second: number): string => new Date(second * 1000).toISOString()
const stages = (['requested', 'queued', 'started', 'ended'] as const).map((stage, position) => ({ stage, position, at: at(position * position) }))

test('a run took the time from its start to its end, or to now', () => {
  expect(tookMs(stages, 99_000)).toBe(5_000)
  expect(tookMs(stages.slice(0, 3), 99_000)).toBe(95_000)
  expect(tookMs(stages.slice(0, 3), 1_000)).toBe(0)
  expect(tookMs(stages.slice(0, 2), 99_000)).toBeNull()
})
