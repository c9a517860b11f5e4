import { describe, expect, test } from 'vitest'

import { dateAndTime, instantOf, LOCAL, UTC, wallTime, zoneName } from './zone'

const DAYS = [0, 1e9, 1774747799e3, 1774747800e3, 1792891799e3, 1792891800e3, 4e12, -1]
const OWN = Intl.DateTimeFormat().resolvedOptions().timeZone

describe('clocks', () => {
  test.each(DAYS)('of the browser and of UTC show what Intl says, at %d', (instant) => {
    expect(wallTime(instant, LOCAL)).toEqual(wallTime(instant, OWN))
    expect(wallTime(instant, UTC)).toEqual(wallTime(instant, 'Etc/UTC'))
  })

  test('read and show a time alike', () => {
    const wall = { year: 2026, month: 11, day: 25, hour: 18, minute: 0, second: 2 }
    for (const zone of [LOCAL, UTC, 'Asia/Tokyo']) expect(dateAndTime(instantOf(wall, zone)!, zone)).toBe('2026-11-25 18:00:02')
    expect([zoneName(LOCAL), zoneName('Asia/Tokyo')]).toEqual([OWN, 'Asia/Tokyo'])
  })
})
