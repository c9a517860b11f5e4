// How instants read: relative to now, in a time zone, and exactly in UTC.

import { dateAndTime } from '../moment/zone'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Return how far an instant is from now, such as `3 min ago` or `in 2 h`; null if a day or more. */
export function relative(instantMs: number, nowMs: number): string | null {
  const past = nowMs - instantMs
  const distance = Math.abs(past)
  if (!(distance < DAY_MS)) return null
  if (distance < SECOND_MS) return 'now'
  const text =
    distance < MINUTE_MS ? `${Math.floor(distance / SECOND_MS)} s`
    : distance < HOUR_MS ? `${Math.floor(distance / MINUTE_MS)} min`
    : `${Math.floor(distance / HOUR_MS)} h`
  return past > 0 ? `${text} ago` : `in ${text}`
}

/** Return date and time in a time zone, to the second: `2026-03-01 09:00:00`. */
export function dateTime(at: string, timeZone: string): string {
  const instant = Date.parse(at)
  return Number.isNaN(instant) ? '' : dateAndTime(instant, timeZone)
}

/** Return an instant as the server wrote it, for reading: `2026-03-01 09:00:00.123456 UTC`. */
export function exactUtc(at: string): string {
  return at.replace('T', ' ').replace(/Z$|\+00:00$/, ' UTC')
}
