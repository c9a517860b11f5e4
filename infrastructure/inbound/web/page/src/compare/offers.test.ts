import { expect, test } from 'vitest'

import { isLikeTask, offered, questionWords, type Offerable } from './offers'

const run = (runId: string, taskPreview: string | null, taskBytes = taskPreview?.length ?? 0, label: string | null = null): Offerable => ({ runId, label, taskPreview, taskBytes })

test.each([
  ['Count the harbours in chapter 7', 'count the harbours in chapter 112', true],
  ['Read the tide tables for day 7', 'Read the tide tables for day 2026-11-28', true],
  ['Read the tide tables', 'Read the tide tables at once', false],
  ['Räume Hafen 3 auf', 'räume hafen 4 auf', true],
  ['12', '13', false],
  ['Count', null, false],
])('the tasks %s and %s are alike: %s', (one, other, isLike) => {
  expect(isLikeTask(run('a', one), run('b', other))).toBe(isLike)
})

test('of long tasks the beginnings are compared, wherever they are cut', () => {
  const words = 'look at each boat of the harbour and '
  expect(isLikeTask(run('a', `9 ${words}wri`, 900), run('b', `1234 ${words}w`, 900))).toBe(true)
  expect(isLikeTask(run('a', `9 ${words}wri`, 900), run('b', '9 look at each quay of the harb', 900))).toBe(false)
  expect(isLikeTask(run('a', 'Count', 900), run('b', 'Read', 900))).toBe(false)
})

test('the newest run with a like task is first, then the newest of all; none is the run itself or twice', () => {
  const failed = run('failed', 'Count chapter 1')
  const runs = [run('failed', 'Count chapter 1'), run('other', 'Read day 2'), run('like', 'Count chapter 3'), run('older', 'Count chapter 4')]
  const offers = (of: Offerable, among: Offerable[]) => offered(of, among).map(({ run, has }) => [run.runId, has])
  expect(offers(failed, runs)).toEqual([['like', 'task'], ['other', null]])
  expect(offers(failed, runs.slice(2))).toEqual([['like', 'task']])
  expect(offers(failed, [])).toEqual([])
  // A like task of the same customer comes before a newer one of another.
  const labelled = run('failed', 'Count chapter 1', 15, 'customer-5')
  const namesakes = [run('newer', 'Count chapter 3', 15, 'customer-9'), run('same', 'Count chapter 2', 15, 'customer-5'), run('unlike', 'Read day 2', 10, 'customer-5')]
  expect(offers(labelled, namesakes)).toEqual([['same', 'label'], ['newer', null]])
})

test('a search has the longest words of the task', () => {
  expect(questionWords(run('a', 'Count the harbours in chapter 7, and name each of them all'))).toBe('harbours chapter count name each them the and')
  expect(questionWords(run('a', '12 34'))).toBeNull()
})
