import { CirclePlus, Clock, Menu, Square, X } from 'lucide'
import { expect, test } from 'vitest'

import { pathOf } from './icon_path'

test('an icon is one path of all its shapes', () => {
  expect(pathOf(Menu)).toBe('M4 5h16M4 12h16M4 19h16')
  expect(pathOf(Clock)).toBe('M2 12a10 10 0 0 1 20 0a10 10 0 0 1 -20 0M12 6v6l4 2')
  expect(pathOf(Square)).toBe('M5 3h14a2 2 0 0 1 2 2v14a2 2 0 0 1 -2 2h-14a2 2 0 0 1 -2 -2v-14a2 2 0 0 1 2 -2')
  expect(pathOf(CirclePlus)).toContain('M8 12h8')
  // A path that begins with `m` begins at the corner, wherever the one before it ended.
  expect(pathOf(X)).toBe('M18 6 6 18M0 0m6 6 12 12')
})

test('a shape that is not drawn yet is refused', () => {
  expect(() => pathOf([['polygon', { points: '1 2' }]])).toThrow('polygon')
})
