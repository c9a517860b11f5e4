import { describe, expect, test } from 'vitest'

import type { RunBarView } from '../api/shapes'
import { inOrder, rootsOf } from './roots'

const bar = (depth: number, requesterSessionKey: string, childSessionKey: string | null, status: RunBarView['status'], position: number): RunBarView => ({
  runId: String(position), stage: 'ended', status, agentId: null, label: null, depth, requesterSessionKey, childSessionKey,
  outcome: status === 'done' ? 'success' : status === 'failed' ? 'error' : null, parentRunId: null, respawnedFrom: null,
  stages: [{ stage: 'requested', position, at: `at ${position}` }],
})

describe('roots of runs', () => {
  test('count the runs of a whole tree, in whatever order they come', () => {
    const [root, ...others] = rootsOf([bar(3, 'a1', null, 'refused', 7), bar(2, 'a', 'a1', 'running', 5), bar(1, 'main', 'a', 'failed', 2), bar(1, 'main', 'b', 'done', 3)])
    expect(others).toEqual([])
    expect(root).toEqual({ sessionKey: 'main', runs: 4, active: 1, running: 1, failed: 1, refused: 1, ended: 2, lastAt: 'at 7', lastPosition: 7 })
  })
  test('are those at work first, then those with the newest event', () =>
    expect(rootsOf([bar(1, 'one', null, 'done', 1), bar(1, 'two', null, 'done', 9), bar(1, 'three', null, 'waiting', 2), bar(1, 'four', null, 'running', 4), bar(1, 'five', null, 'refused', 7)]).map(({ sessionKey }) => sessionKey))
      .toEqual(['four', 'three', 'two', 'five', 'one']))
  test('that timed out have not failed', () => expect(rootsOf([bar(1, 'one', null, 'timeout', 1)])[0]?.failed).toBe(0))
  test('keep an order, new ones last', () =>
    expect(inOrder(rootsOf([bar(1, 'new', null, 'running', 9), bar(1, 'two', null, 'done', 7), bar(1, 'one', null, 'done', 3)]), ['one', 'two']).map(({ sessionKey }) => sessionKey))
      .toEqual(['one', 'two', 'new']))
})
