// The views of the page: name, key and required rights of each.

import type { View } from './moment/address'
import type { Scope } from './session.svelte'

export interface Shown {
  name: string
  /** The key after `g`; null for a view that only links lead to. */
  key: string | null
  /** Whether it is of a single resource: it takes its `id` from the address. */
  isOfOne: boolean
  /** True if it requires a token that sees the whole log. */
  needsEverything?: boolean
  /** The scope that it requires beside `read`. */
  scope?: Scope
}

export const SHOWN: Record<View, Shown> = {
  overview: { name: 'Overview', key: 'o', isOfOne: false },
  runs: { name: 'Runs', key: 'r', isOfOne: false },
  tree: { name: 'Tree', key: 't', isOfOne: false },
  run: { name: 'Run', key: null, isOfOne: true },
  compare: { name: 'Compare', key: null, isOfOne: true },
  changes: { name: 'Changes', key: 'd', isOfOne: false },
  'what-if': { name: 'What if', key: 'w', isOfOne: false, needsEverything: true },
  log: { name: 'Log', key: 'l', isOfOne: false },
  'shared-context': { name: 'Shared context', key: 's', isOfOne: false, scope: 'content' },
  announcements: { name: 'Announcements', key: 'a', isOfOne: false },
  lanes: { name: 'Lanes', key: 'n', isOfOne: false },
  configuration: { name: 'Configuration', key: 'c', isOfOne: false, needsEverything: true },
  verify: { name: 'Verify', key: 'v', isOfOne: false, needsEverything: true },
}
