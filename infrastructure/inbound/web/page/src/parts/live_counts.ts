// Counts of what is going on, which the server ends early in a large log.

import type { LiveRunsView } from '../api/shapes'
import { count } from './text'

export type LiveCounts = Pick<LiveRunsView, 'preparing' | 'running' | 'queued' | 'waiting' | 'cut' | 'parkedCut'>

/** The server counts so many runs that are not over. */
const RUNS_MAX = 5_000

/** Return true if there are more runs than were counted; `cut` is also true for announcements alone. */
export function areRunsCut({ preparing, running, queued, waiting, cut, parkedCut }: LiveCounts): boolean {
  return cut && (!parkedCut || preparing + running + queued + waiting >= RUNS_MAX)
}

/** Return `5,000 or more` for a count that was ended early. */
export function atLeast(of: number, isCut: boolean): string {
  return `${count(of)}${isCut ? ' or more' : ''}`
}
