import { expect, test } from 'vitest'

import { callsOf, comparedCalls } from './calls'

const call = (sequence: number, name: string, input: unknown, output: unknown = 'ok') => ({ sequence, kind: 'tool', body: { name, input, output } })

test('two runs differ from the first call on that is another one', () => {
  const left = callsOf([call(1, 'read', { path: 'a' }), call(3, 'bash', 'ls'), call(5, 'bash', 'pwd')])
  const right = callsOf([call(1, 'read', { path: 'a' }), { sequence: 2, kind: 'message', body: {} }, call(4, 'bash', 'rm')])
  const compared = comparedCalls(left, right, 10)
  expect(compared).toMatchObject({ same: 1, differs: 'call' })
  expect(compared.pairs.map(({ left: one, right: other }) => [one?.input, other?.input])).toEqual([['ls', 'rm'], ['pwd', undefined]])
})

test('the same call with another output differs in its output', () => {
  expect(comparedCalls(callsOf([call(1, 'bash', 'ls', 'a')]), callsOf([call(9, 'bash', 'ls', 'b')]), 10)).toMatchObject({ same: 0, differs: 'output' })
})

test('equal calls have no difference, and only some pairs are given', () => {
  const calls = callsOf([call(1, 'bash', 'ls')])
  expect(comparedCalls(calls, calls, 10)).toEqual({ same: 1, differs: null, pairs: [] })
  expect(comparedCalls(Array(30).fill(calls[0]), [], 4).pairs).toHaveLength(4)
})
