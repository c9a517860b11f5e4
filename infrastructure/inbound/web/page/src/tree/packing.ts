// Bars in rows, as few as there can be: no two bars of a row overlap.

import type { Stretch } from './axis'

/** The row of each stretch, in the order in which they are given, and how many rows there are. */
export function packed(stretches: Stretch[]): { rows: number[]; count: number } {
  const order = stretches.map((_, index) => index).sort((one, other) => stretches[one]!.start - stretches[other]!.start)
  const rows = new Array<number>(stretches.length).fill(0)
  // Rows by when they are free again, the earliest first.
  const free: { at: number; row: number }[] = []
  let count = 0
  for (const index of order) {
    const one = stretches[index]!
    const first = free[0]
    let row: number
    if (first && first.at <= one.start) {
      row = first.row
      pop(free)
    } else row = count++
    rows[index] = row
    push(free, { at: Math.max(one.end, one.start + 1), row })
  }
  return { rows, count }
}

type Free = { at: number; row: number }
const isEarlier = (one: Free, other: Free): boolean => one.at < other.at || (one.at === other.at && one.row < other.row)

function push(heap: Free[], item: Free): void {
  let at = heap.push(item) - 1
  while (at > 0) {
    const above = (at - 1) >> 1
    if (!isEarlier(heap[at]!, heap[above]!)) return
    ;[heap[at], heap[above]] = [heap[above]!, heap[at]!]
    at = above
  }
}

function pop(heap: Free[]): void {
  const last = heap.pop()!
  if (heap.length === 0) return
  heap[0] = last
  let at = 0
  for (;;) {
    const left = 2 * at + 1
    let least = at
    if (left < heap.length && isEarlier(heap[left]!, heap[least]!)) least = left
    if (left + 1 < heap.length && isEarlier(heap[left + 1]!, heap[least]!)) least = left + 1
    if (least === at) return
    ;[heap[at], heap[least]] = [heap[least]!, heap[at]!]
    at = least
  }
}
