import { describe, expect, test } from 'vitest'

import { foldedAxis } from './axis'
import { packed } from './packing'

const DAY = 86_400_000

describe('bars in rows', () => {
  test('stand in one where they follow each other, in two where they overlap', () => {
    expect(packed([{ start: 0, end: 5 }, { start: 5, end: 9 }, { start: 3, end: 7 }])).toEqual({ rows: [0, 0, 1], count: 2 })
  })

  test('never overlap, and take no more rows than are at work at once', () => {
    let seed = 1
    const random = (): number => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647
    const stretches = Array.from({ length: 10_000 }, () => {
      const start = Math.floor(random() * 1_000_000)
      return { start, end: start + 1 + Math.floor(random() * 2_000) }
    })
    const { rows, count } = packed(stretches)
    const ends = new Array<number>(count).fill(-1)
    const order = stretches.map((_, index) => index).sort((a, b) => stretches[a]!.start - stretches[b]!.start)
    for (const index of order) {
      expect(stretches[index]!.start).toBeGreaterThanOrEqual(ends[rows[index]!]!)
      ends[rows[index]!] = stretches[index]!.end
    }
    const edges = stretches.flatMap((one) => [[one.start, 1], [one.end, -1]] as const).sort((a, b) => a[0] - b[0] || a[1] - b[1])
    let now = 0
    let most = 0
    for (const [, by] of edges) most = Math.max(most, (now += by))
    expect(count).toBe(most)
  })
})

describe('an axis', () => {
  const axis = foldedAxis([{ start: 0, end: 10_000 }, { start: 600 * DAY, end: 600 * DAY + 10_000 }, { start: 9_000, end: 20_000 }])

  test('folds a pause of months to a break that says how long it was', () => {
    expect(axis.breaks).toHaveLength(1)
    expect(axis.breaks[0]!.took).toBe(600 * DAY - 20_000)
    expect(axis.length).toBeLessThan(31_000)
  })

  test('leads from an instant to its place and back', () => {
    for (const instant of [0, 5_000, 20_000, 600 * DAY, 600 * DAY + 10_000]) expect(axis.instant(axis.place(instant))).toBeCloseTo(instant)
  })

  test('has what was in a pause at its beginning, and never runs back', () => {
    expect(axis.place(300 * DAY)).toBe(axis.place(20_000))
    const places = [-5, 0, 1, 20_000, 300 * DAY, 600 * DAY, 700 * DAY].map(axis.place)
    expect([...places].sort((a, b) => a - b)).toEqual(places)
  })

  test('of nothing is there all the same', () => expect(foldedAxis([]).place(5)).toBe(0))
})
