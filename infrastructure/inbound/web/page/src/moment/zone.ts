// Wall-clock times of a time zone: how an instant reads there, and which instant a time on the wall is.
// A time zone is that of the browser, UTC, or any other by its IANA name.

const DAY_MS = 86_400_000

/** A date and time as a clock on the wall shows it. */
export interface WallTime {
  year: number
  month: number
  day: number
  hour: number
  minute: number
  second: number
}

/** The time zone of the browser. Its IANA name is asked for where it is shown: that takes long the first time. */
export const LOCAL = 'local'
export const UTC = 'UTC'

const formats = new Map<string, Intl.DateTimeFormat>()

function format(timeZone: string): Intl.DateTimeFormat {
  let known = formats.get(timeZone)
  if (known === undefined) {
    known = new Intl.DateTimeFormat('en-US', {
      timeZone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric',
    })
    formats.set(timeZone, known)
  }
  return known
}

/** Return what a clock in the zone shows at an instant (milliseconds since 1970). */
export function wallTime(instant: number, timeZone: string): WallTime {
  if (timeZone === LOCAL || timeZone === UTC) return ownWallTime(new Date(instant), timeZone === UTC)
  // `3/1/2026, 09:00:00`: its parts one by one take ten times as long.
  const [month = NaN, day = NaN, year = NaN, hour = NaN, minute = NaN, second = NaN] = (format(timeZone).format(instant).match(/\d+/g) ?? []).map(Number)
  return { year, month, day, hour, minute, second }
}

function ownWallTime(at: Date, isUtc: boolean): WallTime {
  return isUtc
    ? { year: at.getUTCFullYear(), month: at.getUTCMonth() + 1, day: at.getUTCDate(), hour: at.getUTCHours(), minute: at.getUTCMinutes(), second: at.getUTCSeconds() }
    : { year: at.getFullYear(), month: at.getMonth() + 1, day: at.getDate(), hour: at.getHours(), minute: at.getMinutes(), second: at.getSeconds() }
}

/** Return the name of a time zone as people know it: `Europe/Berlin`. */
export function zoneName(timeZone: string): string {
  return timeZone === LOCAL ? Intl.DateTimeFormat().resolvedOptions().timeZone : timeZone
}

/**
 * Return the instant of a wall-clock time, or null if no calendar has it, such as February 30.
 *
 * When clocks go forward, a time that they skip is the same distance after the change. When they go
 * back, a time that comes twice is the first one.
 */
export function instantOf(wall: WallTime, timeZone: string): number | null {
  const plain = plainMs(wall)
  if (plain === null) return null
  const before = plain - offsetMs(plain - DAY_MS, timeZone)
  const after = plain - offsetMs(plain + DAY_MS, timeZone)
  const fits = [before, after].filter((instant) => plainMs(wallTime(instant, timeZone)) === plain)
  return fits.length === 0 ? before : Math.min(...fits)
}

/** Return how far clocks of the zone are ahead of UTC at an instant. */
export function offsetMs(instant: number, timeZone: string): number {
  return (plainMs(wallTime(instant, timeZone)) ?? instant) - Math.floor(instant / 1_000) * 1_000
}

/** Return the wall-clock time as if it were UTC; null if no calendar has it. */
function plainMs({ year, month, day, hour, minute, second }: WallTime): number | null {
  if (hour > 23 || minute > 59 || second > 59) return null
  const at = new Date(0)
  at.setUTCFullYear(year, month - 1, day)
  if (at.getUTCFullYear() !== year || at.getUTCMonth() !== month - 1 || at.getUTCDate() !== day) return null
  return at.getTime() + ((hour * 60 + minute) * 60 + second) * 1_000
}

const two = (of: number): string => String(of).padStart(2, '0')

/** `2026-11-25 18:00:02` */
export function dateAndTime(instant: number, timeZone: string): string {
  const { year, month, day } = wallTime(instant, timeZone)
  return `${String(year).padStart(4, '0')}-${two(month)}-${two(day)} ${timeOfDay(instant, timeZone)}`
}

/** `18:00:02`, or `18:00` */
export function timeOfDay(instant: number, timeZone: string, hasSeconds = true): string {
  const { hour, minute, second } = wallTime(instant, timeZone)
  return `${two(hour)}:${two(minute)}${hasSeconds ? `:${two(second)}` : ''}`
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** `Nov 25` */
export function shortDate(instant: number, timeZone: string): string {
  const { month, day } = wallTime(instant, timeZone)
  return `${MONTHS[month - 1] ?? ''} ${day}`
}
