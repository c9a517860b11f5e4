// The axis of the time bar: instants from left to right, long pauses folded, and each place a position.

import type { EventBucketView } from '../api/shapes'
import { lastNotAbove } from '../parts/sorted'
import { offsetMs, shortDate, timeOfDay } from './zone'

/** What a column of the bar counts. */
export interface Load {
  events: number
  failed: number
  timeout: number
  stopped: number
  refused: number
}

/** Ends that are not good, and refusals, from the bottom of a column up. */
export const BAD = ['failed', 'timeout', 'stopped', 'refused'] as const

export interface Column extends Load {
  /** Instants of its first and last event. */
  from: number
  until: number
}

export interface Label {
  /** Share of the width. */
  x: number
  text: string
}

interface Tick {
  x: number
  at: number
  hasSeconds: boolean
}

interface Piece extends Load {
  firstPosition: number
  lastPosition: number
  firstAt: number
  lastAt: number
  /** Where it is drawn, as shares of the width. */
  left: number
  right: number
}

/** Pauses are folded if each is longer than half of everything that is then shown, and so many times
 * longer than the next longest. */
const PAUSE_SHARE = 0.5
const PAUSE_TIMES = 3
const PAUSE_MS_MIN = 2_000
const PAUSES_MAX = 12
/** How many other spans there are at least: without them the pauses are all there is to see. */
const SPANS_MIN = 8
/** Width of a folded pause, as a share of what is shown. */
const FOLD_SHARE = 0.02
/** How much time the bar covers at least. */
const LENGTH_MS_MIN = 1_000

export class TimeAxis {
  readonly #pieces: Piece[]
  #length = LENGTH_MS_MIN
  /** Folded pauses: where they are, and how long they took. */
  readonly folds: { x: number; width: number; took: number }[] = []

  constructor(buckets: EventBucketView[]) {
    this.#pieces = buckets.flatMap(pieceOf)
    this.#layOut()
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0
  }

  get firstPosition(): number {
    return this.#pieces[0]?.firstPosition ?? 0
  }

  /** Return where a position is, as a share of the width. */
  xOf(position: number): number {
    const index = lastNotAbove(this.#pieces, position, (piece) => piece.firstPosition)
    const piece = this.#pieces[index]
    if (piece === undefined) return 0
    if (position >= piece.lastPosition) return piece.right
    return piece.left + ((piece.right - piece.left) * (position - piece.firstPosition)) / (piece.lastPosition - piece.firstPosition)
  }

  /** Return the last position at a place: the state there is the one after that event. */
  positionAt(x: number): number {
    const piece = this.#pieces[Math.max(0, lastNotAbove(this.#pieces, x, (other) => other.left))]
    if (piece === undefined) return 0
    const { firstPosition, lastPosition, left, right } = piece
    if (x < left) return firstPosition - 1
    if (x >= right || right === left) return lastPosition
    return firstPosition + Math.floor(((lastPosition - firstPosition) * (x - left)) / (right - left))
  }

  /** Return the instant at a place, in milliseconds. */
  instantAt(x: number): number {
    const index = lastNotAbove(this.#pieces, x, (piece) => piece.left)
    const piece = this.#pieces[Math.max(0, index)]
    if (piece === undefined) return 0
    if (index < 0) return piece.firstAt - (piece.left - x) * this.#length
    const next = this.#pieces[index + 1]
    if (x > piece.right && next !== undefined) return between(x, piece.right, next.left, piece.lastAt, next.firstAt)
    return between(x, piece.left, piece.right, piece.firstAt, piece.lastAt)
  }

  /** Return so many columns of equal width. The first and the last event of a bucket count where they
   * are; its other ones are spread evenly. */
  columns(number: number): Column[] {
    const columns = Array.from({ length: number }, (): Column => ({ events: 0, failed: 0, timeout: 0, stopped: 0, refused: 0, from: Infinity, until: -Infinity }))
    for (const piece of this.#pieces) {
      const first = Math.min(number - 1, Math.floor(piece.left * number))
      const last = Math.min(number - 1, Math.max(first, Math.ceil(piece.right * number) - 1))
      const covered = last - first + 1
      const ends = covered === 1 ? 0 : Math.min(2, piece.events)
      for (let place = first; place <= last; place += 1) {
        const column = columns[place]!
        const share = (of: number): number => Math.round(((place - first + 1) * of) / covered) - Math.round(((place - first) * of) / covered)
        const events = share(piece.events - ends) + (ends > 0 && place === first ? 1 : 0) + (ends > 1 && place === last ? 1 : 0)
        column.events += events
        for (const state of BAD) column[state] += share(piece[state])
        if (events === 0) continue
        column.from = Math.min(column.from, between(Math.max(piece.left, place / number), piece.left, piece.right, piece.firstAt, piece.lastAt))
        column.until = Math.max(column.until, between(Math.min(piece.right, (place + 1) / number), piece.left, piece.right, piece.firstAt, piece.lastAt))
      }
    }
    return columns
  }

  /** Return labels that are at least `apart` (a share of the width) from each other. */
  labels(apart: number, timeZone: string): Label[] {
    if (this.isEmpty) return []
    const starts: Tick[] = []
    const ticks: Tick[] = []
    const edges = [0, ...this.folds.map((fold) => fold.x + fold.width)]
    for (const [index, left] of edges.entries()) {
      const right = this.folds[index]?.x ?? 1
      const [from, until] = [this.instantAt(left), this.instantAt(right)]
      if (right <= left || until <= from) continue
      const step = stepOf(((until - from) / (right - left)) * apart)
      starts.push({ x: left, at: from, hasSeconds: step < MINUTE })
      const offset = offsetMs(from, timeZone)
      for (let at = Math.ceil((from + offset) / step) * step - offset; at < until; at += step) {
        ticks.push({ x: left + ((right - left) * (at - from)) / (until - from), at, hasSeconds: step < MINUTE })
      }
    }
    // The first instant behind a pause says more than a round one.
    const kept: Tick[] = []
    for (const tick of [...starts, ...ticks]) {
      if (tick.x <= 1 - apart && kept.every((other) => Math.abs(other.x - tick.x) >= apart)) kept.push(tick)
    }
    let lastDay = ''
    return kept.sort((one, other) => one.x - other.x).map(({ x, at, hasSeconds }) => {
      const day = shortDate(at, timeZone)
      const text = `${day === lastDay ? '' : `${day} `}${timeOfDay(at, timeZone, hasSeconds)}`
      lastDay = day
      return { x, text }
    })
  }

  /** Give each piece its place. */
  #layOut(): void {
    const pieces = this.#pieces
    const spans = pieces.flatMap((piece, index) => {
      const next = pieces[index + 1]
      return [piece.lastAt - piece.firstAt, ...(next === undefined ? [] : [next.firstAt - piece.lastAt])]
    })
    const pauseMin = shortestPause(spans)
    const shown = spans.reduce((sum, span) => sum + (span >= pauseMin ? 0 : span), 0)
    const fold = shown * FOLD_SHARE
    const folds = spans.filter((span) => span >= pauseMin).length
    const length = shown + folds * fold
    const scale = Math.max(length, LENGTH_MS_MIN)
    // A log of a single instant is one bar at the right edge.
    let at = scale - length
    this.#length = scale
    const move = (span: number): number => {
      if (span < pauseMin) return (at += span)
      this.folds.push({ x: at / scale, width: fold / scale, took: span })
      return (at += fold)
    }
    for (const [index, piece] of pieces.entries()) {
      piece.left = at / scale
      piece.right = move(piece.lastAt - piece.firstAt) / scale
      const next = pieces[index + 1]
      if (next !== undefined) move(next.firstAt - piece.lastAt)
    }
  }
}

function pieceOf(bucket: EventBucketView): Piece[] {
  const { firstPosition, lastPosition, firstAt, lastAt, events, outcomes, rules } = bucket
  if (events === 0 || firstPosition === null || lastPosition === null || firstAt === null || lastAt === null) return []
  const first = Date.parse(firstAt)
  return [{
    firstPosition, lastPosition, events, firstAt: first, lastAt: Math.max(first, Date.parse(lastAt)), left: 0, right: 0,
    failed: (outcomes['error'] ?? 0) + (outcomes['unknown'] ?? 0), timeout: outcomes['timeout'] ?? 0, stopped: outcomes['stopped'] ?? 0,
    refused: Object.values(rules).reduce((sum, refusals) => sum + refusals, 0),
  }]
}

/** Return how long a pause is at least that is folded; Infinity if none is. */
function shortestPause(spans: number[]): number {
  const longest = spans.filter((span) => span > 0).sort((one, other) => other - one)
  let rest = longest.reduce((sum, span) => sum + span, 0)
  let shortest = Infinity
  let times = PAUSE_TIMES
  for (const [index, pause] of longest.slice(0, Math.min(PAUSES_MAX, longest.length - SPANS_MIN)).entries()) {
    rest -= pause
    const jump = pause / Math.max(PAUSE_MS_MIN, longest[index + 1]!)
    if (pause <= rest * PAUSE_SHARE || jump < times) continue
    shortest = pause
    times = jump
  }
  return shortest
}

function between(x: number, left: number, right: number, from: number, until: number): number {
  return right <= left ? from : from + ((until - from) * Math.min(1, Math.max(0, (x - left) / (right - left))))
}

const SECOND = 1_000
const MINUTE = 60_000
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400].map((seconds) => seconds * SECOND)
const DAY = 86_400_000

function stepOf(least: number): number {
  return STEPS.find((step) => step >= least) ?? Math.ceil(least / DAY) * DAY
}
