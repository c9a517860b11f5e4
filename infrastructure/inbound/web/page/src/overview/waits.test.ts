import { expect, test } from 'vitest'

import { dependencyText, waitText } from './waits'

test('each reason to wait has its sentence', () => {
  expect(waitText({ reason: 'runs', lane: null, depth: null, runs: 1 })).toBe('1 run waits for other runs to end')
  expect(waitText({ reason: 'slot', lane: 'subagent', depth: 1, runs: 3 })).toBe('3 runs wait for a slot: lane subagent, depth 1 is full')
  expect(waitText({ reason: 'claim', lane: 'subagent', depth: 2, runs: 2 })).toBe('2 runs wait to be claimed by a server or worker, in lane subagent, depth 2')
  expect(waitText({ reason: 'claim', lane: null, depth: null, runs: 1 })).toBe('1 run waits to be claimed by a server or worker')
})

test('only dependencies that are not met are named', () => {
  expect(dependencyText([{ name: 'plan', state: 'waiting' }, { name: 'old', state: 'met' }, { name: 'a\u202eb', state: 'waiting' }])).toBe('waits for plan, a⟨202E⟩b')
  expect(dependencyText([{ name: 'old', state: 'met' }])).toBe('')
})
