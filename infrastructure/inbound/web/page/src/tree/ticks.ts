// Ticks of a folded axis: round times of the time zone, and the first instant after each pause.

import { offsetMs, shortDate, timeOfDay } from '../moment/zone'
import type { Axis } from './axis'

export interface Tick {
  /** Share of the width that is in sight. */
  x: number
  text: string
}

const TICK_PX = 80
const CHARACTER_PX = 7
const BESIDE_PX = 12
const SECOND = 1_000
const DAY = 86_400_000
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500,
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400].map((seconds) => seconds * SECOND),
]

/**
 * Return the ticks of the axis between two places, in order, so that no label overlaps the next one.
 *
 * Args:
 *   widthPx: the width on which the axis is drawn.
 */
export function ticksOf(axis: Axis, left: number, right: number, widthPx: number, timeZone: string): Tick[] {
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
  const kept: { x: number; at: number }[] = []
  for (const tick of [...starts, ...rounds]) {
    if (tick.x <= 1 - apart && kept.every((other) => Math.abs(other.x - tick.x) >= apart)) kept.push(tick)
  }
  const ticks: Tick[] = []
  let day = ''
  let end = -Infinity
  for (const { x, at } of kept.sort((one, other) => one.x - other.x)) {
    const date = shortDate(at, timeZone)
    const text = `${date === day ? '' : `${date} `}${timeOf(at, step, timeZone)}`
    if (x < end) continue
    ticks.push({ x, text })
    day = date
    end = x + (text.length * CHARACTER_PX + BESIDE_PX) / widthPx
  }
  return ticks
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
