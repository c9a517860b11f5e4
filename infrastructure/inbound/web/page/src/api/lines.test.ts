import { expect, test } from 'vitest'

import { lineTaker } from './lines'

test('a line is given when it has ended, wherever the pieces are cut', () => {
  const take = lineTaker()
  expect(['{"a"', ':1}\n{"b":2}\n', '\n{"c":', '3}', '\n'].map(take)).toEqual([[], [{ a: 1 }, { b: 2 }], [], [], [{ c: 3 }]])
})
