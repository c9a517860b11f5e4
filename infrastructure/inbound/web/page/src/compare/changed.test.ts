import { expect, test } from 'vitest'

import { beforePosition, itemsOf, positionNamed, wordsOf } from './changed'

const item = (id: string, patch: { op: 'add' | 'replace'; path: string; value?: unknown }[]) => ({ kind: 'run' as const, id, label: null, patch })

test('who came to be is told by what it is, and who changed by what did', () => {
  const items = itemsOf({
    added: [item('a', [{ op: 'add', path: '', value: { status: 'refused', agentId: 'x', requestedAgentId: 'x', rule: 'depth' } }])],
    removed: [item('r', [{ op: 'replace', path: '', value: null }])],
    changed: [item('c', [{ op: 'replace', path: '/status', value: 'done' }])],
  })
  expect(items.map((one) => [one.id, one.verdict, one.whole === null])).toEqual([['a', 'added', false], ['r', 'removed', true], ['c', 'changed', true]])
  expect(wordsOf(items[0]!.whole!)).toBe('refused, x, depth')
})

test('a moment before the first event is the one before all', () => {
  expect([beforePosition(1_000), beforePosition(7)]).toEqual(['pos:800', 'pos:0'])
  expect([positionNamed('pos:12'), positionNamed('-5m'), positionNamed('run:a@started')]).toEqual([12, null, null])
})
