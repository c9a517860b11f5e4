import { describe, expect, test } from 'vitest'

import { foldedAxis } from './axis'
import { ticksOf } from './ticks'

const at = (text: string): number => Date.parse(`2026-03-01T${text}Z`)
const widthOf = (text: string): number => text.length * 8
const texts = (stretches: [string, string][], widthPx: number, zone = 'UTC'): string[] => {
  const axis = foldedAxis(stretches.map(([start, end]) => ({ start: at(start), end: at(end) })))
  return ticksOf(axis, 0, axis.length, { widthPx, widthOf }, zone).map(({ text }) => text)
}

describe('ticks of a folded axis', () => {
  test('are round times after the first instant, with the date once', () =>
    expect(texts([['09:00:03', '09:04:03']], 600)).toEqual(['Mar 1 09:00', '09:01', '09:02', '09:03']))
  test('are in the time zone', () => expect(texts([['23:00:00', '23:30:00']], 300, 'Asia/Tokyo')).toEqual(['Mar 2 08:00', '08:10', '08:20']))
  test('begin again after a pause', () =>
    expect(texts([['09:00:00', '09:00:10'], ['11:30:01.250', '11:30:11.250']], 600)).toContain('11:30:01'))
  test('have milliseconds on a short axis', () => expect(texts([['09:00:00', '09:00:00.500']], 600)).toContain('09:00:00.300'))
  test.each([{ pauses: 0 }, { pauses: 1 }, { pauses: 5 }, { pauses: 40 }])('overlap neither each other nor $pauses pauses', ({ pauses }) => {
    const axis = foldedAxis(Array.from({ length: pauses + 1 }, (_, day) => ({ start: day * 86_400_000, end: day * 86_400_000 + 3_600_000 })))
    for (const widthPx of [1, 90, 160, 230, 400, 640, 1_400]) {
      const ticks = ticksOf(axis, 0, axis.length, { widthPx, widthOf }, 'UTC')
      const labels = ticks.map(({ x, text }) => [x * widthPx, x * widthPx + widthOf(text)] as const)
      const marks = axis.breaks.map(({ place }) => (place / axis.length) * widthPx)
      labels.forEach(([start, end], index) => {
        expect(end).toBeLessThanOrEqual(labels[index + 1]?.[0] ?? widthPx)
        expect(marks.filter((mark) => start <= mark && mark <= end)).toEqual([])
      })
    }
  })
  test('have no date where only their time has room', () => {
    const axis = foldedAxis([['09:00:00', '09:10:00'], ['12:00:00', '12:40:00']].map(([start, end]) => ({ start: at(start!), end: at(end!) })))
    expect(ticksOf(axis, 0, axis.length, { widthPx: 400, widthOf }, 'UTC').map(({ text }) => text)).toEqual(['09:00', 'Mar 1 12:00', '12:15', '12:30'])
  })
  test('are none without bars', () => expect(texts([], 600)).toEqual([]))
})
