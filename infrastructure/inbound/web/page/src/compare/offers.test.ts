import { expect, test } from 'vitest'

import { isLikeTask, offered, questionWords, type Offerable } from './offers'

const run = (runId: string, taskPreview: string | null, taskBytes = taskPreview?.length ?? 0): Offerable => ({ runId, taskPreview, taskBytes })

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
  expect(offered(failed, runs).map(({ run, isLike }) => [run.runId, isLike])).toEqual([['like', true], ['other', false]])
  expect(offered(failed, runs.slice(2)).map(({ run, isLike }) => [run.runId, isLike])).toEqual([['like', true]])
  expect(offered(failed, [])).toEqual([])
})

test('a search has the longest words of the task', () => {
  expect(questionWords(run('a', 'Count the harbours in chapter 7, and name each of them all'))).toBe('harbours chapter count name each them the and')
  expect(questionWords(run('a', '12 34'))).toBeNull()
})
