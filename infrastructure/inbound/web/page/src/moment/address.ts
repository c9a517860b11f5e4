// The address of the page: which view, of what, as of when, with which filters. All that one sees
// can be linked to.

export const VIEWS = [
  'runs', 'tree', 'run', 'compare', 'changes', 'what-if', 'log', 'lanes', 'announcements', 'shared-context', 'configuration', 'verify',
] as const
export type View = (typeof VIEWS)[number]

export interface Address {
  view: View
  /** The run, session key or whatever else the view is of; null for one that is of all. */
  id: string | null
  /** The moment as it was asked for: `pos:N`, an instant, a time ago, a run at a stage; null: now. */
  at: string | null
  /** Everything else, in the order of the address. */
  filters: [string, string][]
}

const ROOT = '/ui/'
const VALUE_CHARS_MAX = 1_000
const FILTERS_MAX = 50

/** Reads an address. What it does not know it leaves out: an address comes from anywhere. */
export function readAddress(path: string, query: string): Address {
  const [name = '', ...rest] = path.slice(ROOT.length).split('/')
  const view = (VIEWS as readonly string[]).includes(name) ? (name as View) : 'runs'
  const id = rest.length > 0 && rest[0] !== '' ? decoded(rest.join('/')) : null
  const parameters = [...new URLSearchParams(query)]
    .filter(([, value]) => value.length <= VALUE_CHARS_MAX)
    .slice(0, FILTERS_MAX)
  return {
    view,
    id,
    at: parameters.find(([key]) => key === 'at')?.[1] || null,
    filters: parameters.filter(([key, value]) => key !== 'at' && value !== ''),
  }
}

export function writeAddress(address: Address): string {
  const query = new URLSearchParams()
  if (address.at !== null) query.append('at', address.at)
  for (const [key, value] of address.filters) query.append(key, value)
  const path = ROOT + address.view + (address.id === null ? '' : `/${encodeURIComponent(address.id)}`)
  const text = query.toString().replaceAll('%3A', ':')
  return text ? `${path}?${text}` : path
}

/** What is wrong with a moment that somebody wrote, as far as one sees that without asking; null
 * when nothing is. */
export function momentProblem(text: string, head: number): string | null {
  const position = /^pos:(\d{1,15})$/.exec(text)?.[1]
  if (position !== undefined) return Number(position) <= head ? null : `The log ends at position ${head}.`
  const isInstant = /^\d{4}-\d\d-\d\d[Tt ].*([Zz]|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text))
  if (isInstant || /^-?\d{1,10}(\.\d{1,3})?(ms|[smhdw])$/.test(text) || /^run:.+@[a-z-]+$/.test(text)) return null
  return 'A moment is pos:42, an instant such as 2026-03-01T09:00:00Z, a time ago such as 5m or -5m, or run:NAME@started.'
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}
