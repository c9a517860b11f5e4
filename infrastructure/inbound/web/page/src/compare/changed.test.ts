import { expect, test } from 'vitest'

import { itemsOf, wordsOf } from './changed'

const item = (id: string, patch: { op: 'add' | 'replace'; path: string; value?: unknown }[]) => ({ kind: 'run' as const, id, label: null, patch })

test('an added item has its whole value, a changed one its patch', () => {
  const items = itemsOf({
    added: [item('a', [{ op: 'add', path: '', value: { status: 'refused', agentId: 'x', requestedAgentId: 'x', rule: 'depth' } }])],
    removed: [item('r', [{ op: 'replace', path: '', value: null }])],
    changed: [item('c', [{ op: 'replace', path: '/status', value: 'done' }])],
  })
  expect(items.map((one) => [one.id, one.verdict, one.whole === null])).toEqual([['a', 'added', false], ['r', 'removed', true], ['c', 'changed', true]])
  expect(wordsOf(items[0]!.whole!)).toBe('refused, x, too deep')
})
