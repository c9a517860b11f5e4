// The pieces of a run's bar: prepared, waiting, queued, running.

import type { ReachedStageView } from '../api/shapes'

export interface Pieces {
  start: number
  /** When its session was created, from where on it waits for other runs; `queued` if it never was. */
  created: number
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
  const queued = reached('queued') ?? started
  return { start, created: reached('session-created') ?? queued, queued, started, end }
}

/** Return true if a run waited for other runs. One that did not is queued at the instant of its session. */
export function hasWaited(run: { stages: ReachedStageView[] }, now: number): boolean {
  const { created, queued } = piecesOf(run, now)
  return created < queued
}
