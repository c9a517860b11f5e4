// Numbers beside the views in the navigation.

import type { LiveRunsView } from '../api/shapes'
import type { View } from '../moment/address'
import { atLeast } from '../parts/live_counts'

export interface Badge {
  text: string
  /** What it counts, for a screen reader and on hover. */
  meaning: string
  isBad?: boolean
  /** Where the badge is a link of its own: what it counts, in the list of the view. */
  filters?: [string, string][]
}

type Counts = Pick<LiveRunsView, 'running' | 'queued' | 'parkedAnnouncements' | 'runsCut' | 'parkedCut'>

/** Return the badges of the views for what is going on at a moment; none for what does not. */
export function badgesOf(counts: Counts, isLive: boolean): Partial<Record<View, Badge>> {
  const { running, queued, parkedAnnouncements: parked, runsCut, parkedCut } = counts
  const when = isLive ? 'now' : 'at this moment'
  return {
    ...(running > 0 ? { runs: { text: short(running), meaning: `${atLeast(running, runsCut)} running ${when}` } } : {}),
    ...(queued > 0 ? { lanes: { text: short(queued), meaning: `${atLeast(queued, runsCut)} queued ${when}` } } : {}),
    ...(parked > 0 ? { announcements: { text: `${parked}${parkedCut ? '+' : ''}`, meaning: `${atLeast(parked, parkedCut)} parked`, isBad: true, filters: [['state', 'parked']] } } : {}),
  }
}

function short(count: number): string {
  return count > 999 ? '999+' : String(count)
}
