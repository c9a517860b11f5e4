// The address of the page: view, id, moment and filters. Everything that is shown can be linked to.

export const VIEWS = [
  'overview', 'runs', 'tree', 'run', 'compare', 'changes', 'what-if', 'log', 'lanes', 'announcements', 'shared-context', 'configuration', 'verify',
] as const
export type View = (typeof VIEWS)[number]
/** The view of an address that names none. */
export const FIRST_VIEW: View = 'overview'

export interface Address {
  view: View
  /** The run, session key or other thing that the view is of; null for a view of all. */
  id: string | null
  /** The moment: `pos:N`, an instant, a time ago, or a run at a stage; null is live. */
  at: string | null
  /** Everything else, in the order of the address. */
  filters: [string, string][]
}

const ROOT = '/ui/'
const VALUE_CHARS_MAX = 1_000
const FILTERS_MAX = 50

/** Read an address. It may come from anywhere: unknown parts are left out. */
export function readAddress(path: string, query: string): Address {
  const [name = '', ...rest] = path.slice(ROOT.length).split('/')
  const view = (VIEWS as readonly string[]).includes(name) ? (name as View) : FIRST_VIEW
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

/** Moments that stand in an address as they are. A table has many links with such a moment and no filters. */
const PLAIN = /^[\w.:-]+$/

export function writeAddress(address: Address): string {
  const path = ROOT + address.view + (address.id === null ? '' : `/${encodeURIComponent(address.id)}`)
  if (address.filters.length === 0 && (address.at === null || PLAIN.test(address.at))) return address.at === null ? path : `${path}?at=${address.at}`
  const query = new URLSearchParams()
  if (address.at !== null) query.append('at', address.at)
  for (const [key, value] of address.filters) query.append(key, value)
  const text = query.toString().replaceAll('%3A', ':')
  return text ? `${path}?${text}` : path
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}
