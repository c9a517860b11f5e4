// A moment as people write it, read as one that the server understands.

import { count, visible } from '../parts/text'
import { dateAndTime, instantOf, wallTime, type WallTime } from './zone'

export interface MomentContext {
  /** What the clock of the log says, in milliseconds. */
  now: number
  timeZone: string
  /** The last position of the log. */
  head: number
}

/** The moment for the server, null for live; or why the text is none. */
export type ReadMoment = { at: string | null; problem: null } | { at: null; problem: string }

/** Examples of what `readMoment` reads. */
export const MOMENT_FORMS = '18:00, yesterday 18:00, 2026-11-25 18:00, 20 min ago, a position such as 120, or run:NAME@refused'

const DAY_MS = 86_400_000
const UNITS_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: DAY_MS, w: 7 * DAY_MS }
const TIME_MAX_MS = 8.64e15
const SHOWN_CHARS_MAX = 60
const AGO = /^-?(\d{1,10}(?:\.\d{1,3})?|an? )\s?(ms|s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:eeks?)?)(?: ago)?$/i
const TIME = String.raw`(\d{1,2}):(\d\d)(?::(\d\d))?`
const TIME_ONLY = new RegExp(`^${TIME}$`)
const DAY_AND_TIME = new RegExp(`^(today|yesterday|\\d{4}-\\d\\d-\\d\\d)(?:[t ,]+(?:at )?${TIME})?$`, 'i')
const INSTANT = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d)$/

/** Return a time ago with the word: `20 min ago` for `20 min` and `-20 min`; any other text as it is. */
export function withAgo(text: string): string {
  return AGO.test(text) ? `${text.replace(/^-| ago$/gi, '')} ago` : text
}

/** Return the instant of a time ago as the server reads it, such as `-2h`; null if the text is none. */
export function instantBefore(ago: string, now: number): string | null {
  const read = /^-([\d.]+)(ms|[smhdw])$/.exec(ago)
  const at = read === null ? NaN : now - Number(read[1]) * UNITS_MS[read[2]!]!
  return Math.abs(at) <= TIME_MAX_MS ? new Date(at).toISOString() : null
}

/** Read a position, a time of day, a date, a time ago, an RFC 3339 instant, or a run at a stage. */
export function readMoment(text: string, { now, timeZone, head }: MomentContext): ReadMoment {
  const written = text.trim().replace(/\s+/g, ' ')
  if (/^(now|live)$/i.test(written)) return found(null)
  const position = /^(?:pos:)?(\d[\d,_]{0,20})$/.exec(written)?.[1]?.replace(/[,_]/g, '')
  if (position !== undefined) {
    if (Number(position) <= head) return found(`pos:${Number(position)}`)
    return { at: null, problem: `The log ends at position ${count(head)}.` }
  }
  const ago = AGO.exec(written)
  if (ago) return found(timeAgo(ago[1]!, ago[2]!.toLowerCase()))
  // Whatever its outcome, a run has ended.
  if (/^run:.+@[a-z-]+$/.test(written)) return found(written.replace(/@(done|failed|stopped|timeout)$/, '@ended'))
  if (INSTANT.test(written) && !Number.isNaN(Date.parse(written.replace(' ', 'T')))) return found(written.replace(' ', 'T'))
  const instant = timeToday(written, now, timeZone) ?? dayAndTime(written, now, timeZone)
  if (instant !== null) return found(new Date(instant).toISOString().replace('.000Z', 'Z'))
  return { at: null, problem: notUnderstood(text.trim(), now, timeZone) }
}

/** Return a moment of the address as people write it: an instant as `2026-11-28 18:00` of the zone, a position in words, anything else as it is. */
export function writtenMoment(text: string, timeZone: string): string {
  if (/^pos:\d+$/.test(text)) return text === 'pos:0' ? 'the beginning' : `position ${count(Number(text.slice(4)))}`
  const instant = INSTANT.test(text) ? Date.parse(text.replace(' ', 'T')) : NaN
  return Number.isNaN(instant) ? text : dateAndTime(instant, timeZone).replace(/:00$/, '')
}

function found(at: string | null): ReadMoment {
  return { at, problem: null }
}

/** `-20m` for 20 minutes: the server knows the units by one letter, and milliseconds by two. */
function timeAgo(amount: string, unit: string): string {
  return `-${Number.isNaN(Number(amount)) ? 1 : amount}${unit === 'ms' ? unit : unit[0]}`
}

/** The last time that clocks showed `18:00`: yesterday's if today's is still to come. */
function timeToday(text: string, now: number, timeZone: string): number | null {
  const time = TIME_ONLY.exec(text)
  if (!time) return null
  const today = instantOf({ ...wallTime(now, timeZone), ...timeOf(time, 1) }, timeZone)
  if (today === null || today <= now) return today
  return instantOf({ ...dayBefore(now, timeZone), ...timeOf(time, 1) }, timeZone)
}

function dayAndTime(text: string, now: number, timeZone: string): number | null {
  const read = DAY_AND_TIME.exec(text)
  if (!read) return null
  const named = read[1]!.toLowerCase()
  const day = named === 'today' ? wallTime(now, timeZone) : named === 'yesterday' ? dayBefore(now, timeZone) : dateOf(named)
  return instantOf({ ...day, ...timeOf(read, 2) }, timeZone)
}

function dateOf(text: string): WallTime {
  const [year, month, day] = text.split('-').map(Number) as [number, number, number]
  return { year, month, day, hour: 0, minute: 0, second: 0 }
}

function timeOf(read: RegExpExecArray, first: number): { hour: number; minute: number; second: number } {
  return { hour: Number(read[first] ?? 0), minute: Number(read[first + 1] ?? 0), second: Number(read[first + 2] ?? 0) }
}

/** The calendar day before, whose length is not always 24 hours. */
function dayBefore(now: number, timeZone: string): WallTime {
  const { year, month, day } = wallTime(now, timeZone)
  return wallTime(Date.UTC(year, month - 1, day) - DAY_MS, 'UTC')
}

function notUnderstood(text: string, now: number, timeZone: string): string {
  const { year, month, day } = dayBefore(now, timeZone)
  const shown = text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}…` : text
  const example = `${year}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')} 18:00`
  return `"${visible(shown)}" is not a time I understand. Try ${example}, 20 min ago, or a position such as 120.`
}
