// A run as a stretch of time, in the pieces that its stages make: prepared, queued, at work.

import type { RunBarView } from '../api/shapes'

export interface Pieces {
  start: number
  /** Since when it waited for its lane; `started` when it did not. */
  queued: number
  /** Since when it was at work; `end` when it never was. */
  started: number
  end: number
}

/** What is not over goes on up to `now`. */
export function piecesOf(bar: Pick<RunBarView, 'stages'>, now: number): Pieces {
  const reached = (...names: string[]): number | undefined => {
    const found = bar.stages.find((one) => names.includes(one.stage))
    return found && Date.parse(found.at)
  }
  const start = Date.parse(bar.stages[0]?.at ?? '') || 0
  const end = Math.max(start, reached('ended', 'refused') ?? now)
  const started = reached('started') ?? end
  return { start, queued: reached('queued') ?? started, started, end }
}
