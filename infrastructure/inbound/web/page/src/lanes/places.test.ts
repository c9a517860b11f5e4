import { expect, test } from 'vitest'

import { placesOf } from './places'

const NOBODY = { runId: null, label: null, holder: null }

test('who holds a slot comes before who waits, and each has a key of its own', () => {
  const lane = (depth: number) => ({
    lane: 'subagent', depth, width: 2,
    running: [NOBODY, { runId: `r${depth}`, label: 'first', holder: 'server-1' }],
    queued: [{ runId: null, label: null, place: 1, waitsFor: 'a slot' }, { runId: `q${depth}`, label: null, place: 2, waitsFor: 'a slot' }],
  })
  const places = placesOf([lane(1), lane(2)])
  expect(places.map(({ depth, place, runId, waitsFor }) => [depth, place, runId, waitsFor])).toEqual([
    [1, null, null, null], [1, null, 'r1', null], [1, 1, null, 'a slot'], [1, 2, 'q1', 'a slot'],
    [2, null, null, null], [2, null, 'r2', null], [2, 1, null, 'a slot'], [2, 2, 'q2', 'a slot'],
  ])
  expect(new Set(places.map((one) => one.key)).size).toBe(8)
  expect(places.every((one) => /^\S+$/.test(one.key))).toBe(true)
})
