// The server's clock, as far as its answers tell it: how long a run has been at work does not depend on
// the clock of the browser.

import { createSubscriber } from 'svelte/reactivity'

const TICK_MS = 1_000
/** `Date` has whole seconds. */
const DATE_STEP_MS = 1_000

export class ServerClock {
  /** How far the server's clock is ahead of this one. */
  #aheadMs = 0
  #subscribe = createSubscriber((update) => {
    const timer = setInterval(update, TICK_MS)
    return () => clearInterval(timer)
  })

  /** Takes the `Date` of an answer to a request that was sent at one time and answered at another. Each
   * answer says between which bounds the server's clock is; the best guess stays where it fits. */
  note(date: string | null, sentMs: number, answeredMs: number): void {
    const servedMs = Date.parse(date ?? '')
    if (Number.isNaN(servedMs)) return
    const least = servedMs - answeredMs
    const most = servedMs + DATE_STEP_MS - sentMs
    this.#aheadMs = Math.min(Math.max(this.#aheadMs, least), most)
  }

  /** What it says now, in milliseconds; whatever shows it is shown anew each second. */
  get now(): number {
    this.#subscribe()
    return Date.now() + this.#aheadMs
  }
}

export const clock = new ServerClock()
