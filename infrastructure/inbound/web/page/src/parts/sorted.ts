// Search in sorted lists.

/** Return the index of the last item whose value is not above `wanted`; -1 if all are. */
export function lastNotAbove<T>(items: T[], wanted: number, value: (item: T) => number): number {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (value(items[middle]!) <= wanted) low = middle + 1
    else high = middle
  }
  return low - 1
}
