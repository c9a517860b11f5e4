import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { Throttle } from './throttle'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('changes that never rest are acted on all the same, with the newest value', () => {
  const acted: number[] = []
  const throttle = new Throttle<number>((value) => acted.push(value), 300, 1_000)
  for (let change = 0; change < 30; change += 1) {
    throttle.give(change)
    vi.advanceTimersByTime(100)
  }
  expect(acted).toEqual([2, 12, 22])
})

test('the last change is acted on, and the first one after a rest soon', () => {
  const acted: string[] = []
  const throttle = new Throttle<string>((value) => acted.push(value), 300, 1_000)
  throttle.give('a')
  vi.advanceTimersByTime(300)
  throttle.give('b')
  vi.advanceTimersByTime(999)
  expect(acted).toEqual(['a'])
  vi.advanceTimersByTime(5_001)
  expect(acted).toEqual(['a', 'b'])
  throttle.give('c')
  vi.advanceTimersByTime(300)
  expect(acted).toEqual(['a', 'b', 'c'])
  throttle.give('d')
  throttle.end()
  vi.advanceTimersByTime(5_000)
  expect(acted).toEqual(['a', 'b', 'c'])
})
