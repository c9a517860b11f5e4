import { expect, test } from 'vitest'

import { linesOf, membersOf, reads } from './sides'

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

test('usage and cost read as figures', () => {
  expect(reads({ inputTokens: 12_345, outputTokens: 67, totalTokens: 12_412, estimatedCostUsd: 0.5 }, 'usage')).toBe('12,345 tokens in, 67 out, estimatedCostUsd: $0.5000')
  expect([reads(2, 'estimatedCostUsd'), reads({ a: 1 }), reads(undefined)]).toEqual(['$2.00', '{"a":1}', ''])
})
