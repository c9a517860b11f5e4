import { expect, test } from 'vitest'

import { differingExcerpts, isJudgedForBoth, isNaming, linesOf, membersOf, realDifferences, reads } from './sides'

test('members are compared whatever the order of what is in them, and what is erased is not the same', () => {
  const members = membersOf({ a: { x: 1, y: [2] }, b: 'one', gone: null }, { a: { y: [2], x: 1 }, b: 'two', gone: null, c: 3 }, ['gone'])
  expect(members.map((one) => [one.name, one.isSame])).toEqual([['a', true], ['b', false], ['gone', false], ['c', false]])
})

test('a diff loses the names of its files and keeps lines that look like them', () => {
  expect(linesOf('--- left\n+++ right\n@@ -1 +1 @@\n-- old\n+++ new\n kept\n')).toEqual([
    { kind: 'place', text: '@@ -1 +1 @@' },
    { kind: 'removed', text: '-- old' },
    { kind: 'added', text: '+++ new' },
    { kind: 'kept', text: ' kept' },
  ])
})

test('a rule that was not judged for one run was not decided for both', () => {
  const side = (result: 'passed' | 'refused' | 'not_judged') => ({ result, compared: null, text: '', configRevision: 1 })
  expect([isJudgedForBoth({ left: side('refused'), right: side('passed') }), isJudgedForBoth({ left: side('not_judged'), right: side('passed') }), isJudgedForBoth({ left: null, right: side('passed') })]).toEqual([true, false, false])
})

test('values that are no text read as JSON', () => {
  expect([reads('a'), reads({ a: 1 }), reads(undefined)]).toEqual(['a', '{"a":1}', ''])
})

test('names of a run and of its sessions are no real difference', () => {
  const members = membersOf({ label: 'a', requesterSessionKey: 'b', taskBytes: 1, task: 'x', mode: 'run' }, { label: 'c', requesterSessionKey: 'd', taskBytes: 2, task: 'y', mode: 'run' })
  expect(realDifferences(members).map((one) => one.name)).toEqual(['task'])
  expect(isNaming({ of: 'systemPrompt', source: 'session', verdict: 'different' })).toBe(true)
  expect(isNaming({ of: 'systemPrompt', source: 'session', verdict: 'left_only' })).toBe(false)
  expect(isNaming({ of: 'message', source: 'task', verdict: 'different' })).toBe(false)
})

test('an excerpt of two long texts has their first difference', () => {
  const begin = 'a '.repeat(100)
  expect(differingExcerpts(`${begin}left and more`, `${begin}right`, 70)).toEqual([`… ${'a '.repeat(30)}left and m …`, `… ${'a '.repeat(30)}right`])
  expect(differingExcerpts('left', 'right', 70)).toEqual(['left', 'right'])
  expect(differingExcerpts(`x${begin}`, `y${begin}`, 3)).toEqual(['xa  …', 'ya  …'])
  expect(differingExcerpts(begin, `${begin}!`, 70)).toEqual([`… ${'a '.repeat(30)}`, `… ${'a '.repeat(30)}!`])
})
