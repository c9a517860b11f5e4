// How long a run took: one definition for every view, which is that of `runtimeMs` in the API.

import type { ReachedStageView } from '../api/shapes'
import { millisecondsBetween } from './text'

/** Milliseconds from the start of the child to the end of the run, or to `now` while it is at work; null
 * if the child has not started. */
export function tookMs(stages: ReachedStageView[], now: number): number | null {
  const reached = (name: ReachedStageView['stage']): string | undefined => stages.find((one) => one.stage === name)?.at
  const started = reached('started')
  if (started === undefined) return null
  const ended = reached('ended')
  return ended === undefined ? Math.max(0, now - Date.parse(started)) : millisecondsBetween(started, ended)
}
