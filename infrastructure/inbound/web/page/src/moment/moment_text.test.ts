import { describe, expect, test } from 'vitest'

import { readMoment, withAgo, writtenMoment } from './moment_text'

const NOW = Date.parse('2026-11-26T12:13:02Z')
const read = (text: string, timeZone = 'UTC', now = NOW): ReturnType<typeof readMoment> => readMoment(text, { now, timeZone, head: 2_379 })

describe('a moment in writing', () => {
  test.each([
    ['120', 'pos:120'], ['2,379', 'pos:2379'], ['pos:0', 'pos:0'], ['now', null], ['-2h', '-2h'], ['5m', '-5m'], ['1.5h ago', '-1.5h'],
    ['20 minutes ago', '-20m'], ['20 min', '-20m'], ['30 secs ago', '-30s'], ['1 hour ago', '-1h'], ['an hour ago', '-1h'], ['a day ago', '-1d'], ['2 Weeks', '-2w'], ['3 hrs', '-3h'],
    ['500MS', '-500ms'],
    ['run:late@refused', 'run:late@refused'], ['run:late@failed', 'run:late@ended'], ['2026-03-01T09:00:00Z', '2026-03-01T09:00:00Z'], ['2026-03-01 09:00:00.5+01:00', '2026-03-01T09:00:00.5+01:00'],
    ['12:13', '2026-11-26T12:13:00Z'], ['9:05:30', '2026-11-26T09:05:30Z'], ['18:00', '2026-11-25T18:00:00Z'],
    ['yesterday', '2026-11-25T00:00:00Z'], [' Yesterday  18:00 ', '2026-11-25T18:00:00Z'], ['yesterday at 18:00', '2026-11-25T18:00:00Z'], ['today 08:00', '2026-11-26T08:00:00Z'],
    ['2026-11-25', '2026-11-25T00:00:00Z'], ['2026-11-25 18:00', '2026-11-25T18:00:00Z'], ['2026-11-25T18:00:07', '2026-11-25T18:00:07Z'], ['2024-02-29', '2024-02-29T00:00:00Z'],
  ])('reads %s', (text, at) => {
    expect(read(text)).toEqual({ at, problem: null })
  })

  test.each([
    ['18:00', 'Asia/Tokyo', '2026-11-26T09:00:00Z'],
    ['2026-11-25 18:00', 'America/New_York', '2026-11-25T23:00:00Z'],
    ['2026-11-25', 'Asia/Kolkata', '2026-11-24T18:30:00Z'],
    // Clocks go from 2:00 to 3:00: the half hour that they skip is half an hour after the change.
    ['2026-03-29 02:30', 'Europe/Berlin', '2026-03-29T01:30:00Z'],
    ['2026-03-29 01:59', 'Europe/Berlin', '2026-03-29T00:59:00Z'],
    ['2026-03-29 03:00', 'Europe/Berlin', '2026-03-29T01:00:00Z'],
    // Clocks go from 3:00 back to 2:00: a time that comes twice is the first one.
    ['2026-10-25 02:30', 'Europe/Berlin', '2026-10-25T00:30:00Z'],
    ['2026-10-25 03:00', 'Europe/Berlin', '2026-10-25T02:00:00Z'],
    ['2026-11-01 01:30', 'America/New_York', '2026-11-01T05:30:00Z'],
    // A day that has no midnight begins at one o'clock.
    ['2024-09-08', 'America/Santiago', '2024-09-08T04:00:00Z'],
  ])('reads %s in %s', (text, timeZone, at) => {
    expect(read(text, timeZone)).toEqual({ at, problem: null })
  })

  test.each([
    ['yesterday 18:00', 'Europe/Berlin', '2026-03-30T00:30:00Z', '2026-03-29T16:00:00Z'],
    ['yesterday', 'Europe/Berlin', '2026-10-25T23:30:00Z', '2026-10-24T22:00:00Z'],
    ['yesterday 12:00', 'Pacific/Kiritimati', '2026-01-01T00:00:00Z', '2025-12-30T22:00:00Z'],
    ['00:30', 'Asia/Tokyo', '2026-11-25T15:10:00Z', '2026-11-24T15:30:00Z'],
  ])('counts days as the zone does: %s in %s', (text, timeZone, now, at) => {
    expect(read(text, timeZone, Date.parse(now))).toEqual({ at, problem: null })
  })

  test.each(['18:99', '24:00', '5y', '5 months ago', 'an ms ago?', 'a 5m', '-5', 'run:late', '2026-02-30', '2026-13-01', '2026-11-25 18', '2026-13-41T09:00:00Z', 'next week', ''])('is none: %s', (text) => {
    expect(read(text)).toEqual({ at: null, problem: `"${text}" is not a time I understand. Try 2026-11-25 18:00, 20 min ago, or a position such as 120.` })
  })

  test('is none after the end of the log, and shows no hidden mark', () => {
    expect(read('2380').problem).toBe('The log ends at position 2,379.')
    expect(read('a\u202eb').problem).toContain('"a⟨202E⟩b"')
    expect(read('x'.repeat(500)).problem!.length).toBeLessThan(180)
  })
})

test.each([
  ['2026-11-28T00:00:00Z', 'UTC', '2026-11-28 00:00'], ['2026-11-28T00:00:00Z', 'Asia/Tokyo', '2026-11-28 09:00'], ['2026-11-28T08:15:30.250+01:00', 'UTC', '2026-11-28 07:15:30'],
  ['yesterday 18:00', 'UTC', 'yesterday 18:00'], ['1h', 'UTC', '1h'], ['pos:1200', 'UTC', 'position 1,200'], ['pos:0', 'UTC', 'the beginning'], ['2026-13-41T09:00:00Z', 'UTC', '2026-13-41T09:00:00Z'], ['', 'UTC', ''],
])('an address has %s, a field in %s has %s', (text, timeZone, written) => {
  expect(writtenMoment(text, timeZone)).toBe(written)
})

test.each([['20 min', '20 min ago'], ['-2h', '2h ago'], ['an hour', 'an hour ago'], ['-1 week ago', '1 week ago'], ['yesterday', 'yesterday'], ['5 months', '5 months']])('%s reads as %s', (text, said) => {
  expect(withAgo(text)).toBe(said)
})
