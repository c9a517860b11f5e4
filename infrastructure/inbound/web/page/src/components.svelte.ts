// The components of the views. Those of the first two come with the page, the others after them.

import type { Component } from 'svelte'

import type { View } from './moment/address'
import Overview from './overview/Overview.svelte'
import Registry from './registry/Registry.svelte'

/** How long after the first answer the other views are loaded, if nobody has opened one of them. Tabs that
 * are opened together have shown their first views by then. */
const LATER_MS = 3_000

// A view of a single resource takes its `id`; other views take no property.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Components = Record<View, Component<any>>
type First = 'overview' | 'runs'

class LoadedViews {
  /** Whether the other views could not be loaded: the server was away, or has another build of the page. */
  isLost = $state(false)

  #components = $state.raw<Pick<Components, First> & Partial<Components>>({ overview: Overview, runs: Registry })
  #loading: Promise<void> | null = null

  /** Load the other views once nothing waits for it, if the tab is seen. Return a function that cancels this. */
  loadLater(): () => void {
    const timer = setTimeout(() => {
      if (!document.hidden) void this.#load()
    }, LATER_MS)
    return () => clearTimeout(timer)
  }

  /** Return the component of a view; null until it is loaded. */
  of(view: View): Component<{ id: string }> | null {
    return this.#components[view] ?? null
  }

  /** Load the component of a view, unless it is there. */
  want(view: View): void {
    if (this.#components[view] !== undefined) return
    this.isLost = false
    void this.#load()
  }

  #load(): Promise<void> {
    this.#loading ??= this.#loadOnce()
    return this.#loading
  }

  async #loadOnce(): Promise<void> {
    try {
      const others: Omit<Components, First> = await import('./other_views')
      this.#components = { ...this.#components, ...others }
    } catch {
      this.isLost = true
      // The next view that is opened tries again.
      this.#loading = null
    }
  }
}

export const loadedViews = new LoadedViews()
