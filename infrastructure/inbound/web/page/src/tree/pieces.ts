// The pieces of a run's bar: prepared, queued, running.

import type { ReachedStageView } from '../api/shapes'

export interface Pieces {
  start: number
  /** When it joined its lane's queue; `started` if it never did. */
  queued: number
  /** When its child started; `end` if it never did. */
  started: number
  end: number
}

/** Return the pieces of a run, in milliseconds. A run that is not over goes on until `now`. */
export function piecesOf({ stages }: { stages: ReachedStageView[] }, now: number): Pieces {
  const reached = (...names: string[]): number | undefined => {
    const found = stages.find((one) => names.includes(one.stage))
    return found && Date.parse(found.at)
  }
  const start = Date.parse(stages[0]?.at ?? '') || 0
  const end = Math.max(start, reached('ended', 'refused') ?? now)
  const started = reached('started') ?? end
  return { start, queued: reached('queued') ?? started, started, end }
}
