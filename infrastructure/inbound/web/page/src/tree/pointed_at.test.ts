import { expect, test } from 'vitest'

import { pointedAt } from './pointed_at'

// A pixel is one millisecond.
const ROW = [{ start: 10, end: 20 }, { start: 21, end: 21 }, { start: 30, end: 40 }]

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
])('a pointer %s', (_, px, place) => {
  expect(pointedAt(ROW, (byPx) => px + byPx)).toBe(place)
})
