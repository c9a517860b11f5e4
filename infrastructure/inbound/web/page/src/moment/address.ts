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

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}
