// Which bar of a row a pointer is at.

import { lastNotAbove } from '../parts/sorted'
import type { Stretch } from './axis'

/** A bar is at least so wide when it is drawn. */
export const BAR_PX_MIN = 1.5
const NEAR_PX = 2

/** Return the index of the stretch that is drawn under a pointer, or else of the nearest one within two
 * pixels; -1 if there is none.
 *
 * @param row Stretches that do not overlap, in their order.
 * @param xOf Return where an instant is, in pixels. */
export function pointedAt(row: Stretch[], xOf: (instant: number) => number, px: number): number {
  const place = lastNotAbove(row, px, (one) => xOf(one.start))
  const before = row[place]
  const after = row[place + 1]
  const left = before === undefined ? Infinity : px - Math.max(xOf(before.end), xOf(before.start) + BAR_PX_MIN)
  const right = after === undefined ? Infinity : xOf(after.start) - px
  if (left <= 0 || (left <= right && left <= NEAR_PX)) return place
  return right <= NEAR_PX ? place + 1 : -1
}
