import { expect, test } from 'vitest'

import { periodOf, startOf } from './period'

const NOW = Date.parse('2026-03-29T10:30:15.250Z')

test('today begins at midnight of the zone, also on a day of 23 hours', () => {
  expect(startOf('today', NOW, 'UTC', true)).toBe('2026-03-29T00:00:00Z')
  expect(startOf('today', NOW, 'Europe/Berlin', true)).toBe('2026-03-28T23:00:00Z')
  expect(startOf('today', NOW, 'Pacific/Auckland', true)).toBe('2026-03-28T11:00:00Z')
})

test('the last hours are a time ago while live, and an instant in the past', () => {
  expect(startOf('24h', NOW, 'UTC', true)).toBe('24h')
  expect(startOf('24h', NOW, 'UTC', false)).toBe('2026-03-28T10:30:15.250Z')
  expect(startOf('7d', NOW, 'UTC', false)).toBe('2026-03-22T10:30:15.250Z')
})

test('an unknown period in the address is today', () => {
  expect([periodOf(null), periodOf('1h'), periodOf('<b>')]).toEqual(['today', '1h', 'today'])
})
