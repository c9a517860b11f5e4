import { expect, test, vi } from 'vitest'

import { ServerClock } from './clock.svelte'

const SECOND = 1_000
const at = (ms: number): string => new Date(ms).toUTCString()

test.each([0, 3_600 * SECOND, -90 * SECOND])('a browser clock that differs by %d ms reads the server time', (aheadMs) => {
  vi.useFakeTimers({ now: 1_800_000_000_000 })
  const clock = new ServerClock()
  for (let step = 0; step < 30; step += 1) {
    vi.advanceTimersByTime(137)
    const server = Date.now() + aheadMs
    clock.note(at(server - 10), Date.now() - 20, Date.now())
    expect(Math.abs(clock.now - server)).toBeLessThanOrEqual(SECOND)
  }
  expect(Math.abs(clock.now - (Date.now() + aheadMs))).toBeLessThanOrEqual(150)
  vi.useRealTimers()
})

test('a server whose clock is set back is followed', () => {
  vi.useFakeTimers({ now: 1_800_000_000_000 })
  const clock = new ServerClock()
  clock.note(at(Date.now() + 60 * SECOND), Date.now(), Date.now())
  clock.note(at(Date.now() - 60 * SECOND), Date.now(), Date.now())
  expect(Math.abs(clock.now - (Date.now() - 60 * SECOND))).toBeLessThanOrEqual(SECOND)
  clock.note(null, Date.now(), Date.now())
  vi.useRealTimers()
})
