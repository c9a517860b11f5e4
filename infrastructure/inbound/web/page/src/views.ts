// The views of the page: name, key and required rights of each.

import type { Component } from 'svelte'

import Announcements from './announcements/Announcements.svelte'
import Changes from './compare/Changes.svelte'
import Compare from './compare/Compare.svelte'
import Configuration from './configuration/Configuration.svelte'
import Lanes from './lanes/Lanes.svelte'
import Log from './log/Log.svelte'
import type { View } from './moment/address'
import Overview from './overview/Overview.svelte'
import Registry from './registry/Registry.svelte'
import Run from './run/Run.svelte'
import type { Scope } from './session.svelte'
import SharedContext from './shared_context/SharedContext.svelte'
import Tree from './tree/Tree.svelte'
import Verify from './verify/Verify.svelte'
import WhatIf from './what_if/WhatIf.svelte'

export interface Shown {
  name: string
  /** The key after `g`; null for a view that only links lead to. */
  key: string | null
  /** A view of a single resource takes its `id` from the address; other views take no property. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  component: Component<any>
  isOfOne: boolean
  /** True if it requires a token that sees the whole log. */
  needsEverything?: boolean
  /** The scope that it requires beside `read`. */
  scope?: Scope
}

export const SHOWN: Record<View, Shown> = {
  overview: { name: 'Overview', key: 'o', component: Overview, isOfOne: false },
  runs: { name: 'Runs', key: 'r', component: Registry, isOfOne: false },
  tree: { name: 'Tree', key: 't', component: Tree, isOfOne: false },
  run: { name: 'Run', key: null, component: Run, isOfOne: true },
  compare: { name: 'Compare', key: null, component: Compare, isOfOne: true },
  changes: { name: 'Changes', key: 'd', component: Changes, isOfOne: false },
  'what-if': { name: 'What if', key: 'w', component: WhatIf, isOfOne: false, needsEverything: true },
  log: { name: 'Log', key: 'l', component: Log, isOfOne: false },
  'shared-context': { name: 'Shared context', key: 's', component: SharedContext, isOfOne: false, scope: 'content' },
  announcements: { name: 'Announcements', key: 'a', component: Announcements, isOfOne: false },
  lanes: { name: 'Lanes', key: 'n', component: Lanes, isOfOne: false },
  configuration: { name: 'Configuration', key: 'c', component: Configuration, isOfOne: false, needsEverything: true },
  verify: { name: 'Verify', key: 'v', component: Verify, isOfOne: false, needsEverything: true },
}
