import { describe, expect, test } from 'vitest'

import type { EventBucketView } from '../api/shapes'
import { TimeAxis } from './time_axis'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const START = Date.parse('2026-11-25T08:00:00Z')

/** Buckets of events, each `[minute of the first, minute of the last, events, of these failed]`. */
function buckets(...given: [number, number, number, number?][]): EventBucketView[] {
  let position = 0
  return given.map(([from, until, events, failed = 0]) => {
    const firstPosition = position + 1
    position += events
    return {
      firstPosition, lastPosition: position, firstAt: new Date(START + from * MINUTE).toISOString(), lastAt: new Date(START + until * MINUTE).toISOString(),
      since: null, until: null, events, types: {}, outcomes: failed ? { error: failed } : ({} as Record<string, number>), rules: {},
    }
  })
}

describe('the axis of the time bar', () => {
  test('is time: a quiet half takes half of the width', () => {
    const axis = new TimeAxis(buckets([0, 30, 200], [60, 60, 1]))
    expect(axis.folds).toEqual([])
    expect(axis.xOf(200)).toBeCloseTo(0.5)
    expect(axis.instantAt(0.75)).toBe(START + 45 * MINUTE)
  })

  test('leads from a place to a position and back', () => {
    const axis = new TimeAxis(buckets([0, 10, 100], [12, 20, 50], [30, 40, 10]))
    for (const position of [1, 2, 50, 99, 100, 101, 149, 150, 155, 160]) expect(axis.positionAt(axis.xOf(position) + 1e-9)).toBe(position)
    // Between two buckets nothing was recorded.
    expect(axis.positionAt(11 / 40)).toBe(100)
    expect(axis.positionAt(1)).toBe(160)
    expect(axis.xOf(1_000)).toBe(1)
  })

  test('folds nights and keeps pauses of the day', () => {
    const days = [0, 1, 2].flatMap((day): [number, number, number][] => [[day * 1_440, day * 1_440 + 60, 50], [day * 1_440 + 90, day * 1_440 + 150, 50]])
    const axis = new TimeAxis(buckets(...days))
    expect(axis.folds.map((fold) => fold.took)).toEqual([21.5 * HOUR, 21.5 * HOUR])
    expect(axis.xOf(100)).toBeGreaterThan(0.3)
    expect(axis.xOf(100)).toBeLessThan(0.35)
    const labels = axis.labels(0.1, 'UTC').map((label) => label.text)
    expect(labels.filter((text) => text.startsWith('Nov'))).toEqual(['Nov 25 08:00', 'Nov 26 08:00', 'Nov 27 08:00'])
  })

  test('folds one long pause between two storms', () => {
    const storm = (from: number): [number, number, number][] => Array.from({ length: 10 }, (_, index) => [from + index / 60, from + (index + 0.5) / 60, 20])
    const axis = new TimeAxis(buckets(...storm(0), ...storm(900_000)))
    expect(axis.folds).toHaveLength(1)
    expect(axis.xOf(200)).toBeGreaterThan(0.45)
    expect(axis.xOf(200)).toBeLessThan(0.5)
  })

  test('folds none where pauses are the rule', () => {
    const three = [0, 3, 9].map((minute): [number, number, number] => [minute, minute, 2])
    expect(new TimeAxis(buckets(...three)).folds).toEqual([])
    const bursts = Array.from({ length: 20 }, (_, index): [number, number, number] => [index, index + 0.05, 8])
    expect(new TimeAxis(buckets(...bursts)).folds).toEqual([])
  })

  test('counts each event in one column, and says between which instants', () => {
    const axis = new TimeAxis(buckets([0, 4, 80, 8], [5, 5, 20], [9, 10, 10, 1]))
    const columns = axis.columns(50)
    expect(columns.reduce((sum, column) => sum + column.events, 0)).toBe(110)
    expect(columns.reduce((sum, column) => sum + column.failed, 0)).toBe(9)
    expect(columns.slice(0, 20).map((column) => column.failed).filter(Boolean)).toHaveLength(8)
    // A quiet bucket has nothing between its first and its last event.
    const quiet = new TimeAxis(buckets([0, 100, 2])).columns(100).map((column) => column.events)
    expect([quiet[0], quiet[1], quiet[50], quiet[99]]).toEqual([1, 0, 0, 1])
    expect(columns[25]).toMatchObject({ events: 20, from: START + 5 * MINUTE, until: START + 5 * MINUTE })
  })

  test('shows a single event as one column at the right', () => {
    const axis = new TimeAxis(buckets([0, 0, 1]))
    const counted = axis.columns(100).map((column) => column.events)
    expect(counted.indexOf(1)).toBe(99)
    expect(axis.xOf(1)).toBe(1)
    expect(axis.positionAt(1)).toBe(1)
    expect(axis.instantAt(0)).toBe(START - 1_000)
    expect(axis.positionAt(0.5)).toBe(0)
  })

  test('of nothing is empty', () => {
    const axis = new TimeAxis([])
    expect([axis.isEmpty, axis.xOf(3), axis.positionAt(0.5), axis.labels(0.1, 'UTC')]).toEqual([true, 0, 0, []])
  })
})
