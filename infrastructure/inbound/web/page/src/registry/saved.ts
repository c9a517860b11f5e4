// Saved views of the list of runs: a name, and the filters of the address. Stored in this browser.

export interface SavedView {
  name: string
  /** The filters as they are in an address: `status=failed&since=1h`. */
  query: string
}

export const NAME_CHARS_MAX = 60
const QUERY_CHARS_MAX = 4_000
const VIEWS_MAX = 50

/** Built-in views. */
export const BUILT_IN: readonly SavedView[] = [
  { name: 'Running now', query: 'status=running' },
  { name: 'Failures today', query: 'status=failed&status=timeout&status=unknown&endedSince=today' },
  { name: 'Refused today', query: 'status=refused&since=today' },
]

/** Read the stored views. Ignore invalid ones: other programs write to the same store. */
export function readViews(text: string | null): SavedView[] {
  let stored: unknown
  try {
    stored = JSON.parse(text ?? '[]')
  } catch {
    return []
  }
  if (!Array.isArray(stored)) return []
  return stored
    .filter((one): one is SavedView => typeof one?.name === 'string' && typeof one.query === 'string')
    .map(({ name, query }) => ({ name: name.trim().slice(0, NAME_CHARS_MAX), query: query.slice(0, QUERY_CHARS_MAX) }))
    .filter(({ name }) => name !== '')
    .slice(0, VIEWS_MAX)
}

export function writeViews(views: readonly SavedView[]): string {
  return JSON.stringify(views)
}
