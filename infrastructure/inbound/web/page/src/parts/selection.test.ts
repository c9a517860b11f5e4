import { expect, test } from 'vitest'

import { Selection } from './selection.svelte'

const ORDER = ['a', 'b', 'c', 'd', 'e']

test('rows are chosen one by one, in ranges and all at once', () => {
  const selection = new Selection()
  selection.toggle('d')
  selection.extendTo('b', ORDER)
  expect(selection.keys.sort()).toEqual(['b', 'c', 'd'])
  selection.toggle('c')
  expect([selection.has('c'), selection.size]).toEqual([false, 2])
  selection.setAll(ORDER, true)
  expect(selection.size).toBe(5)
  selection.setAll(['a', 'b'], false)
  expect(selection.keys.sort()).toEqual(['c', 'd', 'e'])
  selection.clear()
  expect(selection.size).toBe(0)
})

test('a range without a beginning is one row', () => {
  const selection = new Selection()
  selection.extendTo('c', ORDER)
  selection.toggle('gone')
  selection.extendTo('a', ORDER)
  expect(selection.keys).toEqual(['c', 'gone', 'a'])
})
