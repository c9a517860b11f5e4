// A time axis with its long pauses folded, so that bars stay wide enough to read.

import { lastNotAbove } from '../parts/sorted'

export interface Stretch {
  start: number
  end: number
}

/** A part of the axis without a folded pause. */
export interface AxisPart extends Stretch {
  /** Where its start is. */
  place: number
}

export interface Axis {
  /** Its length in milliseconds, with each folded pause as a short gap. */
  length: number
  /** Return where an instant is. */
  place: (instant: number) => number
  /** Return the instant at a place. */
  instant: (place: number) => number
  parts: AxisPart[]
  /** Folded pauses: where they are, and how many milliseconds they took. */
  breaks: { place: number; took: number }[]
}

const PAUSE_SHARE = 0.05
const PAUSE_MS_MIN = 1_000
const BREAK_SHARE = 0.02

/** Return the axis for these stretches. A pause is folded if it is longer than 5 % of the time in which
 * something ran, and than one second. */
export function foldedAxis(stretches: Stretch[]): Axis {
  const busy = merged(stretches)
  if (busy.length === 0) return { length: 1, place: () => 0, instant: () => 0, parts: [], breaks: [] }
  const worked = busy.reduce((sum, one) => sum + one.end - one.start, 0)
  const pauseMax = Math.max(PAUSE_MS_MIN, worked * PAUSE_SHARE)
  const joined: Stretch[] = []
  for (const one of busy) {
    const last = joined.at(-1)
    if (last && one.start - last.end <= pauseMax) last.end = one.end
    else joined.push({ ...one })
  }
  const shown = joined.reduce((sum, one) => sum + one.end - one.start, 0)
  const gap = Math.max(1, shown * BREAK_SHARE)
  let at = 0
  const parts = joined.map((part): AxisPart => {
    const place = at
    at += part.end - part.start + gap
    return { ...part, place }
  })
  return {
    length: Math.max(1, at - gap),
    parts,
    place: (instant) => {
      const part = parts[lastNotAbove(parts, instant, (one) => one.start)]
      return part === undefined ? 0 : part.place + Math.min(instant, part.end) - part.start
    },
    instant: (place) => {
      const part = parts[Math.max(0, lastNotAbove(parts, place, (one) => one.place))]!
      return Math.min(part.end, part.start + Math.max(0, place - part.place))
    },
    breaks: parts.slice(1).map((part, index) => ({ place: part.place - gap / 2, took: part.start - parts[index]!.end })),
  }
}

function merged(stretches: Stretch[]): Stretch[] {
  const sorted = [...stretches].sort((one, other) => one.start - other.start)
  const busy: Stretch[] = []
  for (const one of sorted) {
    const last = busy.at(-1)
    if (last && one.start <= last.end) last.end = Math.max(last.end, one.end)
    else busy.push({ ...one })
  }
  return busy
}
