// The clock of the log, as far as answers tell it: how long a run has been at work depends neither on the
// clock of the browser nor on that of the server's machine.

import { createSubscriber } from 'svelte/reactivity'

const TICK_MS = 1_000
/** `Date.parse` gives whole milliseconds. */
const STEP_MS = 1

export class LogClock {
  /** How far the clock of the log is ahead of this one. */
  #aheadMs = 0
  #subscribe = createSubscriber((update) => {
    const timer = setInterval(update, TICK_MS)
    return () => clearInterval(timer)
  })

  /** Takes the `Spawnlog-Clock` of an answer to a request that was sent at one time and answered at
   * another. Each answer says between which bounds the clock of the log is; the best guess stays where it
   * fits. */
  note(told: string | null, sentMs: number, answeredMs: number): void {
    const toldMs = Date.parse(told ?? '')
    if (Number.isNaN(toldMs)) return
    const least = toldMs - answeredMs
    const most = toldMs + STEP_MS - sentMs
    this.#aheadMs = Math.min(Math.max(this.#aheadMs, least), most)
  }

  /** What it says now, in milliseconds; whatever shows it is shown anew each second. */
  get now(): number {
    this.#subscribe()
    return Date.now() + this.#aheadMs
  }
}

export const clock = new LogClock()
