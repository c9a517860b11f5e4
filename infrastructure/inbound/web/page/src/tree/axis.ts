// An axis of time on which pauses are folded: what happened stands side by side, whatever lies between.

export interface Stretch {
  start: number
  end: number
}

export interface Axis {
  /** How long the folded axis is, in its own unit: milliseconds, breaks counted as short ones. */
  length: number
  /** Where an instant stands on it. */
  place: (instant: number) => number
  /** Which instant stands there. */
  instant: (place: number) => number
  /** Where pauses are folded, and how long they were in milliseconds. */
  breaks: { place: number; took: number }[]
}

const PAUSE_SHARE = 0.05
const PAUSE_MS_MIN = 1_000
const BREAK_SHARE = 0.02

/** The axis for what happened in these stretches. Pauses longer than a twentieth of all that was busy
 * are folded. */
export function foldedAxis(stretches: Stretch[]): Axis {
  const busy = merged(stretches)
  if (busy.length === 0) return { length: 1, place: () => 0, instant: () => 0, breaks: [] }
  const worked = busy.reduce((sum, one) => sum + one.end - one.start, 0)
  const pauseMax = Math.max(PAUSE_MS_MIN, worked * PAUSE_SHARE)
  const parts: Stretch[] = []
  for (const one of busy) {
    const last = parts.at(-1)
    if (last && one.start - last.end <= pauseMax) last.end = one.end
    else parts.push({ ...one })
  }
  const shown = parts.reduce((sum, one) => sum + one.end - one.start, 0)
  const gap = Math.max(1, shown * BREAK_SHARE)
  const begins: number[] = []
  let at = 0
  for (const part of parts) {
    begins.push(at)
    at += part.end - part.start + gap
  }
  const length = Math.max(1, at - gap)
  return {
    length,
    place: (instant) => {
      const index = lastNotAbove(parts, instant, (part) => part.start)
      if (index < 0) return 0
      const part = parts[index]!
      return begins[index]! + Math.min(instant, part.end) - part.start
    },
    instant: (place) => {
      const index = Math.max(0, lastNotAbove(begins, place, (begin) => begin))
      const part = parts[index]!
      return Math.min(part.end, part.start + Math.max(0, place - begins[index]!))
    },
    breaks: parts.slice(1).map((part, index) => ({ place: begins[index + 1]! - gap / 2, took: part.start - parts[index]!.end })),
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

/** The index of the last item whose value is not above `wanted`; -1 when all are. */
export function lastNotAbove<T>(items: T[], wanted: number, value: (item: T) => number): number {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (value(items[middle]!) <= wanted) low = middle + 1
    else high = middle
  }
  return low - 1
}
