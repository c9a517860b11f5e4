// Whether all is well, in one line.

import type { Answers } from '../api/shapes'
import { count, counted } from '../parts/text'

interface Counts {
  ended: Pick<Answers['getSummary']['ended'], 'statuses'>
  live: Pick<Answers['getSummary']['live'], 'parkedDeliveries'>
}

/** `7 failed, 4 refused, 1 delivery parked`, or that nothing is wrong. */
export function verdictOf({ ended, live }: Counts): string {
  const failed = ['failed', 'timeout', 'unknown'].reduce((sum, state) => sum + (ended.statuses[state] ?? 0), 0)
  const refused = ended.statuses['refused'] ?? 0
  const parts = [
    ...(failed > 0 ? [`${count(failed)} failed`] : []),
    ...(refused > 0 ? [`${count(refused)} refused`] : []),
    ...(live.parkedDeliveries > 0 ? [`${counted(live.parkedDeliveries, 'delivery')} parked`] : []),
  ]
  return parts.length > 0 ? parts.join(', ') : 'All well: nothing failed, nothing was refused, no delivery is parked.'
}
