// Whether all is well, in one line, each part with the list behind it.

import type { Answers } from '../api/shapes'
import { failuresOf } from '../parts/outcomes'
import { count, counted } from '../parts/text'

interface Counts {
  ended: Pick<Answers['getSummary']['ended'], 'statuses'>
  live: Pick<Answers['getSummary']['live'], 'parkedDeliveries'>
}

export interface VerdictPart {
  text: string
  view: 'runs' | 'announcements'
  filters: [string, string][]
}

/** Return `5 failed`, `2 timed out`, `4 refused` and `1 delivery parked`; nothing if all is well. */
export function verdictOf({ ended, live }: Counts, since: string): VerdictPart[] {
  const refused = ended.statuses['refused'] ?? 0
  const over = (text: string, status: string): VerdictPart => ({ text, view: 'runs', filters: [['status', status], ['endedSince', since]] })
  return [
    ...failuresOf(ended.statuses).map(({ status, text }) => over(text, status)),
    ...(refused > 0 ? [over(`${count(refused)} refused`, 'refused')] : []),
    ...(live.parkedDeliveries > 0
      ? [{ text: `${counted(live.parkedDeliveries, 'delivery')} parked`, view: 'announcements' as const, filters: [['state', 'parked']] as [string, string][] }] : []),
  ]
}
