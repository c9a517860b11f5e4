import { expect, test } from 'vitest'

import { differs, placesOf, placeText, sumsOf, takenText } from './places'

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

test('a place says what it is for', () => {
  expect(placeText({ place: null, waitsFor: null }, true)).toBe('holds a slot, not started')
  expect(placeText({ place: null, waitsFor: null })).toBe('holds a slot')
  expect(placeText({ place: 1_000, waitsFor: 'a slot' })).toBe('1,000 in line for a slot')
  expect(placeText({ place: 2, waitsFor: 'to be claimed' })).toBe('2 in line, to be claimed')
})

test('lanes are summed, with the runs that hold a slot and have not started', () => {
  const lane = { lane: 'subagent', depth: 1, width: 2, running: [NOBODY, NOBODY], queued: [{ runId: null, label: null, place: 1, waitsFor: 'a slot' }] }
  expect(sumsOf([lane, { ...lane, depth: 2, queued: [] }])).toEqual({ taken: 4, queued: 1 })
  expect(takenText(4, 0)).toBe('4 slots taken')
  expect(takenText(1, 1)).toBe('1 slot taken (1 not started)')
})

test('a value that is the same in all rows needs no column', () => {
  expect([[1, 1], [1, 2], [], [1]].map((rows) => differs(rows, (row) => row))).toEqual([false, true, false, false])
})
