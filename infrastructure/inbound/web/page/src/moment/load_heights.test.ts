import { expect, test } from 'vitest'

import { heightsOf } from './load_heights'
import type { Column } from './time_axis'

function column(events: number, bad: Partial<Column> = {}): Column {
  return { events, failed: 0, timeout: 0, stopped: 0, refused: 0, from: 0, until: 0, ...bad }
}

test('columns are as tall as the root of their events, and those with few stay visible', () => {
  const [places, all] = heightsOf([column(100), column(25), column(0), column(0.001)], 30)
  expect(places).toEqual([0.125, 0.375, 0.625, 0.875])
  expect(all).toEqual([28, 14, null, 2])
})

test('bad ends and refusals stand on each other, the highest stack first', () => {
  const [, all, refused, stopped, timeout, failed] = heightsOf([column(10, { failed: 5, refused: 5 }), column(10, { timeout: 1 })], 22)
  expect(all).toEqual([20, 20])
  expect(failed).toEqual([10, null])
  expect(timeout).toEqual([null, 6])
  expect(stopped).toEqual([null, null])
  expect(refused).toEqual([20, null])
})
