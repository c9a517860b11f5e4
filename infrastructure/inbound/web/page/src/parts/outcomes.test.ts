import { expect, test } from 'vitest'

import { failuresOf, failuresText, figuresOf } from './outcomes'

test('failed counts that status alone, and the other failures are named beside it', () => {
  const counts = { done: 9, failed: 1_038, timeout: 4, unknown: 1, stopped: 2, refused: 3 }
  expect(failuresText(counts)).toBe('1,038 failed, 4 timed out, 1 unknown')
  expect(failuresOf({ timeout: 4, done: 1 })).toEqual([{ status: 'timeout', text: '4 timed out' }])
  expect(failuresOf({ done: 1, stopped: 2 })).toEqual([])
})

test('each status that runs ended with has a figure, and three always have', () => {
  expect(figuresOf({ timeout: 1, running: 2 })).toEqual(['done', 'failed', 'timeout', 'refused'])
})
