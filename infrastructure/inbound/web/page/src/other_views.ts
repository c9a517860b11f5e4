// The views but for the two that the page opens with: a script of their own, which is loaded after those.

export { default as announcements } from './announcements/Announcements.svelte'
export { default as changes } from './compare/Changes.svelte'
export { default as compare } from './compare/Compare.svelte'
export { default as configuration } from './configuration/Configuration.svelte'
export { default as lanes } from './lanes/Lanes.svelte'
export { default as log } from './log/Log.svelte'
export { default as run } from './run/Run.svelte'
export { default as 'shared-context' } from './shared_context/SharedContext.svelte'
export { default as tree } from './tree/Tree.svelte'
export { default as verify } from './verify/Verify.svelte'
export { default as 'what-if' } from './what_if/WhatIf.svelte'
