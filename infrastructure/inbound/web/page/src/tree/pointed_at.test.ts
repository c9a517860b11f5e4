import { expect, test } from 'vitest'

import { pointedAt } from './pointed_at'

const ROW = [{ start: 10, end: 20 }, { start: 21, end: 21 }, { start: 30, end: 40 }, { start: 1_000, end: 1_010 }]
/** A pixel is a millisecond; the pause before 1,000 is folded to 20 pixels. */
const xOf = (instant: number): number => (instant < 1_000 ? instant : instant - 940)

test.each([
  ['inside a bar', 15, 0],
  ['at the end of a bar, one pixel before the next', 20, 0],
  ['at a bar of no length', 21, 1],
  ['where such a bar is drawn', 22, 1],
  ['near the end of a bar', 42, 2],
  ['near the start of a bar', 28, 2],
  ['between two bars', 25, -1],
  ['before all', 7, -1],
  ['near the first', 8, 0],
  ['in a folded pause', 50, -1],
  ['near the first bar after a folded pause', 59, 3],
  ['behind all', 80, -1],
])('a pointer %s', (_, px, place) => {
  expect(pointedAt(ROW, xOf, px)).toBe(place)
})
