// Whether all is well, in one line, each part with the list behind it.

import type { Answers } from '../api/shapes'
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

export const FAILED = ['failed', 'timeout', 'unknown'] as const

/** Return `7 failed`, `4 refused` and `1 delivery parked`; nothing if all is well. */
export function verdictOf({ ended, live }: Counts, since: string): VerdictPart[] {
  const failed = FAILED.reduce((sum, state) => sum + (ended.statuses[state] ?? 0), 0)
  const refused = ended.statuses['refused'] ?? 0
  const over = (states: readonly string[]): [string, string][] => [...states.map((state): [string, string] => ['status', state]), ['endedSince', since]]
  return [
    ...(failed > 0 ? [{ text: `${count(failed)} failed`, view: 'runs' as const, filters: over(FAILED) }] : []),
    ...(refused > 0 ? [{ text: `${count(refused)} refused`, view: 'runs' as const, filters: over(['refused']) }] : []),
    ...(live.parkedDeliveries > 0
      ? [{ text: `${counted(live.parkedDeliveries, 'delivery')} parked`, view: 'announcements' as const, filters: [['state', 'parked']] as [string, string][] }] : []),
  ]
}
