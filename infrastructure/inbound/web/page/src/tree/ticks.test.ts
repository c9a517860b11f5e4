import { describe, expect, test } from 'vitest'

import { foldedAxis } from './axis'
import { ticksOf } from './ticks'

const at = (text: string): number => Date.parse(`2026-03-01T${text}Z`)
const texts = (stretches: [string, string][], widthPx: number, zone = 'UTC'): string[] => {
  const axis = foldedAxis(stretches.map(([start, end]) => ({ start: at(start), end: at(end) })))
  return ticksOf(axis, 0, axis.length, widthPx, zone).map(({ text }) => text)
}

describe('ticks of a folded axis', () => {
  test('are round times after the first instant, with the date once', () =>
    expect(texts([['09:00:03', '09:04:03']], 600)).toEqual(['Mar 1 09:00', '09:01', '09:02', '09:03']))
  test('are in the time zone', () => expect(texts([['23:00:00', '23:30:00']], 300, 'Asia/Tokyo')).toEqual(['Mar 2 08:00', '08:10', '08:20']))
  test('begin again after a pause', () =>
    expect(texts([['09:00:00', '09:00:10'], ['11:30:01.250', '11:30:11.250']], 600)).toContain('11:30:01'))
  test('have milliseconds on a short axis', () => expect(texts([['09:00:00', '09:00:00.500']], 600)).toContain('09:00:00.300'))
  test('never overlap', () => {
    const axis = foldedAxis([{ start: 0, end: 86_400_000 }])
    for (const widthPx of [1, 90, 160, 400, 1_400]) {
      const ticks = ticksOf(axis, 0, axis.length, widthPx, 'UTC')
      ticks.slice(1).forEach((tick, index) => expect((tick.x - ticks[index]!.x) * widthPx).toBeGreaterThanOrEqual(ticks[index]!.text.length * 7))
    }
  })
  test('are none without bars', () => expect(texts([], 600)).toEqual([]))
})
