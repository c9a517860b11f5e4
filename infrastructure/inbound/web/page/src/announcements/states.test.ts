import { expect, test } from 'vitest'

import type { DeliveryView } from '../api/shapes'
import { redrivable, runName, runState, waysText, wayText } from './states'

const way = (webhook: string, state: DeliveryView['state'], attempts: number, parkedFor: DeliveryView['parkedFor'] = null, statusCode: number | null = null): DeliveryView =>
  ({ webhook, state, attempts, parkedFor, statusCode, error: null, nextAttemptAt: null })
const DELIVERIES = [
  way('a', 'delivered', 1), way('b', 'delivered', 3), way('c', 'due', 0), way('d', 'due', 2),
  way('e', 'parked', 4, 'attempts', 500), way('f', 'parked', 0, 'erased'), way('g', 'parked', 0, 'not_configured'), way('h', 'parked', 1, 'refused', 410),
  way('i', 'parked', 1, 'attempts'),
]

test('each delivery says how far it is', () => {
  expect(DELIVERIES.map(wayText)).toEqual([
    'Delivered', 'Delivered at attempt 3', 'Pending', 'Pending: 2 attempts failed', 'Parked after 4 attempts (HTTP 500)',
    'Parked: the texts of the session were erased', 'Parked: this webhook is no longer configured', 'Parked: refused with HTTP 410',
    'Parked after 1 attempt',
  ])
})

test('what is parked comes first', () => {
  expect(waysText([DELIVERIES[0]!, DELIVERIES[4]!, DELIVERIES[2]!])).toBe('e: Parked after 4 attempts (HTTP 500); c: Pending; a: Delivered')
  expect(waysText(DELIVERIES.slice(0, 6), true)).toBe('e, f: Parked')
  expect(waysText([])).toBe('')
})

test('what is parked can be sent again, unless it was erased', () => {
  expect(redrivable({ deliveries: DELIVERIES })).toEqual(['e', 'g', 'h', 'i'])
})

test('a run is named by agent and label', () => {
  const run = { runId: '15845153-8148-4000-8000-000000000000', childSessionKey: 'agent:summer:subagent:15845153-8148-4000-8000-000000000001', label: null }
  expect(runName(run)).toBe('summer · 15845153')
  expect(runName({ ...run, label: 'tides' })).toBe('summer · tides')
  expect(runName({ ...run, childSessionKey: null, label: '\u202egnp' })).toBe('⟨202E⟩gnp')
})

test('a status has the state of its run', () => {
  expect(['success', 'error', 'timeout', 'unknown', 'another'].map(runState)).toEqual(['done', 'failed', 'timeout', 'unknown', 'unknown'])
})
