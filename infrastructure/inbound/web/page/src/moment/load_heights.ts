// How high the bars of the time bar are.

import { BAD, type Column } from './time_axis'

const SEEN_PX_MIN = 2
const BAD_PX_MIN = 6

/**
 * Return the places of columns (shares of the width, their middles), and the heights in pixels of all
 * events, and of bad ends and refusals stacked, the highest stack first: what is drawn later covers the
 * lower part. A column without events has no height (null).
 */
export function heightsOf(columns: Column[], roomPx: number): [number[], ...(number | null)[][]] {
  const most = Math.max(1, ...columns.map((column) => column.events))
  const places = columns.map((_, index) => (index + 0.5) / columns.length)
  const all: (number | null)[] = []
  const stacks = BAD.map((): (number | null)[] => [])
  for (const column of columns) {
    // By the square root, so that a burst leaves something to see of the rest.
    const tall = Math.max(SEEN_PX_MIN, Math.sqrt(column.events / most) * (roomPx - 2))
    all.push(column.events === 0 ? null : tall)
    let top = 0
    for (const [index, state] of BAD.entries()) {
      if (column[state] > 0) top += Math.max(BAD_PX_MIN, Math.min(1, column[state] / column.events) * tall)
      stacks[index]!.push(column[state] === 0 ? null : top)
    }
  }
  return [places, all, ...stacks.reverse()]
}
