// The arrows on the overview: from row to row of its cards, one column after the other.

// The figures are a card too, but no rows.
const ROWS = '.card:not(ul) :is(li, tbody tr, p):has(a)'

/** Move the focus to the first link of the next row (1) or the previous one (-1). Return false if there is none. */
export function walkRows(root: HTMLElement, by: 1 | -1): boolean {
  const links = [...root.querySelectorAll<HTMLElement>(ROWS)].map((row) => row.querySelector<HTMLElement>('a')).filter((link) => link !== null)
  const row = document.activeElement?.closest<HTMLElement>('li, tr, p')
  const place = links.findIndex((link) => row?.contains(link))
  const next = links[place < 0 ? (by === 1 ? 0 : links.length) : place + by]
  next?.focus()
  return next !== undefined
}
