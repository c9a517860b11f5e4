import { expect, test, vi } from 'vitest'

import type { Answer } from '../api/requests'
import type { Recorded } from '../api/stream'

let recorded: (one: Recorded) => void = () => undefined
vi.stubGlobal('location', { pathname: '/ui/', search: '' })
vi.stubGlobal('localStorage', { getItem: () => null })
vi.stubGlobal('document', { hidden: false, addEventListener: () => undefined, removeEventListener: () => undefined })
vi.stubGlobal('addEventListener', () => undefined)
vi.stubGlobal('removeEventListener', () => undefined)
vi.mock('../api/stream', () => ({
  followLog: (_head: unknown, _runId: unknown, onRecorded: typeof recorded) => {
    recorded = onRecorded
    return () => undefined
  },
}))
const { moment } = await import('./moment.svelte')
const answer = (position: number): Answer<unknown> => ({ body: {}, log: 'log', position, recordedAt: null, etag: null })

test('views read again after an event that the answer to one of them was ahead of', () => {
  vi.useFakeTimers()
  const end = moment.start(null)
  const read = (): number => {
    vi.advanceTimersByTime(1_000)
    return moment.refresh
  }
  moment.takeNote(answer(220))
  recorded({ position: 220, recordedAt: null, log: 'log' })
  expect(read()).toBe(0)
  moment.takeNote(answer(233))
  expect(read()).toBe(0)
  // The stream tells of it: a view with an answer as of 220 is behind.
  recorded({ position: 233, recordedAt: null, log: 'log' })
  expect(read()).toBe(1)
  recorded({ position: 233, recordedAt: null, log: 'log' })
  expect(read()).toBe(1)
  recorded({ position: 234, recordedAt: null, log: 'log' })
  expect([read(), moment.head]).toEqual([2, 234])
  end()
  vi.useRealTimers()
})
