// Ticks of a folded axis: round times of the time zone, and the first instant after each pause.

import { offsetMs, shortDate, timeOfDay } from '../moment/zone'
import type { Axis } from './axis'

export interface Tick {
  /** Share of the width that is in sight. */
  x: number
  text: string
}

/** How a label is drawn. */
export interface Drawn {
  /** The width on which the axis is drawn. */
  widthPx: number
  /** Return the width of a label in pixels. */
  widthOf: (text: string) => number
}

const TICK_PX = 80
/** Between a tick and its text, and between a text and the next tick or mark of a pause. */
const BESIDE_PX = 4
const SECOND = 1_000
const DAY = 86_400_000
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500,
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400].map((seconds) => seconds * SECOND),
]

/**
 * Return the ticks of the axis between two places, in order. No label overlaps another one, the mark of a
 * pause or the end of the axis: one without room is left out, or has no date if only its time has room.
 */
export function ticksOf(axis: Axis, left: number, right: number, { widthPx, widthOf }: Drawn, timeZone: string): Tick[] {
  const width = right - left
  const apart = TICK_PX / widthPx
  if (axis.parts.length === 0 || width <= 0 || apart >= 1) return []
  const step = STEPS.find((one) => one >= width * apart) ?? Math.ceil((width * apart) / DAY) * DAY
  const starts: { x: number; at: number }[] = []
  const rounds: { x: number; at: number }[] = []
  for (const part of axis.parts) {
    const from = Math.max(part.start, part.start + left - part.place)
    const until = Math.min(part.end, part.start + right - part.place)
    if (from > until) continue
    const x = (at: number): number => (part.place + at - part.start - left) / width
    starts.push({ x: x(from), at: from })
    const offset = offsetMs(from, timeZone)
    for (let at = Math.ceil((from + offset) / step) * step - offset; at <= until; at += step) rounds.push({ x: x(at), at })
  }
  const marks = axis.breaks.map(({ place }) => (place - left) / width)
  const endOf = (x: number, text: string): number => x + (widthOf(text) + 2 * BESIDE_PX) / widthPx
  const hasRoom = (x: number, text: string, next = 1): boolean => {
    const end = endOf(x, text)
    return end <= next && !marks.some((mark) => mark >= x && mark <= end)
  }
  const kept: { x: number; at: number; text: string }[] = []
  for (const { x, at } of [...starts, ...rounds]) {
    const text = timeOf(at, step, timeZone)
    const isApart = kept.every((other) => Math.abs(other.x - x) >= apart && (other.x < x ? endOf(other.x, other.text) <= x : endOf(x, text) <= other.x))
    if (isApart && hasRoom(x, text)) kept.push({ x, at, text })
  }
  kept.sort((one, other) => one.x - other.x)
  let day = ''
  return kept.map(({ x, at, text }, index) => {
    const date = shortDate(at, timeZone)
    const whole = `${date} ${text}`
    if (date === day || !hasRoom(x, whole, kept[index + 1]?.x)) return { x, text }
    day = date
    return { x, text: whole }
  })
}

function timeOf(at: number, step: number, timeZone: string): string {
  if (step >= 60 * SECOND) return timeOfDay(at, timeZone, false)
  return step >= SECOND ? timeOfDay(at, timeZone) : exactTime(at, timeZone)
}

/** Return the time of day with milliseconds. */
export function exactTime(at: number, timeZone: string): string {
  const ms = ((Math.floor(at) % SECOND) + SECOND) % SECOND
  return `${timeOfDay(at, timeZone)}.${String(ms).padStart(3, '0')}`
}
