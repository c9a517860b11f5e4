// Which bar of a row a pointer is at.

import { lastNotAbove } from '../parts/sorted'
import type { Stretch } from './axis'

/** A bar is at least so wide when it is drawn. */
export const BAR_PX_MIN = 1.5
const NEAR_PX = 2

/** Return the index of the stretch under a pointer, or else of the last one near it; -1 if there is none.
 *
 * @param row Stretches that do not overlap, in their order.
 * @param instantAt Return the instant so many pixels right of the pointer. */
export function pointedAt(row: Stretch[], instantAt: (byPx: number) => number): number {
  const isAt = (place: number, px: number): boolean => place >= 0 && row[place]!.end >= instantAt(-px)
  const under = lastNotAbove(row, instantAt(0), (one) => one.start)
  if (isAt(under, BAR_PX_MIN)) return under
  const near = lastNotAbove(row, instantAt(NEAR_PX), (one) => one.start)
  return isAt(near, NEAR_PX) ? near : -1
}
