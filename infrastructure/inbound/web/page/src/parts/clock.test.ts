import { expect, test, vi } from 'vitest'

import { LogClock } from './clock.svelte'

const SECOND = 1_000
const at = (ms: number): string => new Date(ms).toISOString().replace('Z', '456Z')

test.each([0, 3_600 * SECOND, -90 * SECOND])('a browser clock that differs by %d ms reads the time of the log', (aheadMs) => {
  vi.useFakeTimers({ now: 1_800_000_000_000 })
  const clock = new LogClock()
  for (let step = 0; step < 30; step += 1) {
    vi.advanceTimersByTime(137)
    const log = Date.now() + aheadMs
    clock.note(at(log - 10), Date.now() - 20, Date.now())
    expect(Math.abs(clock.now - log)).toBeLessThanOrEqual(20)
  }
  expect(Math.abs(clock.now - (Date.now() + aheadMs))).toBeLessThanOrEqual(20)
  vi.useRealTimers()
})

test('a log whose clock is set back is followed', () => {
  vi.useFakeTimers({ now: 1_800_000_000_000 })
  const clock = new LogClock()
  clock.note(at(Date.now() + 60 * SECOND), Date.now(), Date.now())
  clock.note(at(Date.now() - 60 * SECOND), Date.now(), Date.now())
  expect(Math.abs(clock.now - (Date.now() - 60 * SECOND))).toBeLessThanOrEqual(1)
  clock.note(null, Date.now(), Date.now())
  vi.useRealTimers()
})
