// Keys that move the focus among the entries of a menu, or among tabs.

import { FocusKeys, focusZone } from '@primer/behaviors'
import type { Attachment } from 'svelte/attachments'

interface Settings {
  keys: 'up and down' | 'left and right'
  /** Which elements take part. */
  among: string
  /** The element that Tab comes to; the first one if left out. */
  start?: string
}

/** Return an attachment by which arrows, Home and End move the focus in an element, and Tab leaves it. */
export function focusKeys({ keys, among, start = among }: Settings): Attachment<HTMLElement> {
  return (element) => {
    const zone = focusZone(element, {
      bindKeys: (keys === 'up and down' ? FocusKeys.ArrowVertical : FocusKeys.ArrowHorizontal) | FocusKeys.HomeAndEnd,
      focusOutBehavior: 'wrap',
      focusableElementFilter: (one) => one.matches(among),
      focusInStrategy: () => element.querySelector<HTMLElement>(start) ?? undefined,
    })
    return () => zone.abort()
  }
}
