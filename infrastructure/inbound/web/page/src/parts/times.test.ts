import { describe, expect, test } from 'vitest'

import { dateTime, exactUtc, relative } from './times'

const NOW = Date.parse('2026-03-01T12:00:00Z')

test.each([
  ['2026-03-01T11:59:59.5Z', 'now'], ['2026-03-01T11:59:18Z', '42 s ago'], ['2026-03-01T11:56:01Z', '3 min ago'], ['2026-03-01T11:00:00Z', '1 h ago'],
  ['2026-02-28T12:00:01Z', '23 h ago'], ['2026-02-28T12:00:00Z', null], ['2026-03-01T12:03:00Z', 'in 3 min'], ['no instant', null],
])('%s reads as %s at noon', (at, text) => expect(relative(Date.parse(at), NOW)).toBe(text))

describe('date and time', () => {
  test.each([
    ['2026-03-01T23:30:00.999999Z', 'UTC', '2026-03-01 23:30:00'], ['2026-03-01T23:30:00Z', 'Europe/Berlin', '2026-03-02 00:30:00'],
    ['2026-07-01T00:00:00+00:00', 'America/New_York', '2026-06-30 20:00:00'], ['no instant', 'UTC', ''],
  ])('%s in %s is %s', (at, zone, text) => expect(dateTime(at, zone)).toBe(text))

  test('the exact instant keeps what the server wrote', () => {
    expect(exactUtc('2026-03-01T09:00:00.123456Z')).toBe('2026-03-01 09:00:00.123456 UTC')
    expect(exactUtc('2026-03-01T09:00:00+00:00')).toBe('2026-03-01 09:00:00 UTC')
  })
})
