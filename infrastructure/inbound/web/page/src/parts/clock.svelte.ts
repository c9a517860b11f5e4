// The clock of the log, estimated from responses. Elapsed times depend neither on the clock of the
// browser nor on that of the server's machine.

import { createSubscriber } from 'svelte/reactivity'

const TICK_MS = 1_000
/** `Date.parse` gives whole milliseconds. */
const STEP_MS = 1

export class LogClock {
  /** How far the clock of the log is ahead of the browser's. */
  #aheadMs = 0
  #subscribe = createSubscriber((update) => {
    const timer = setInterval(update, TICK_MS)
    return () => clearInterval(timer)
  })

  /** Take note of the `Spawnlog-Clock` of a response. Send and answer time bound the clock of the log;
   * the estimate moves only if it is outside these bounds. */
  note(told: string | null, sentMs: number, answeredMs: number): void {
    const toldMs = Date.parse(told ?? '')
    if (Number.isNaN(toldMs)) return
    const least = toldMs - answeredMs
    const most = toldMs + STEP_MS - sentMs
    this.#aheadMs = Math.min(Math.max(this.#aheadMs, least), most)
  }

  /** The time now, in milliseconds. What reads it is updated each second. */
  get now(): number {
    this.#subscribe()
    return Date.now() + this.#aheadMs
  }
}

export const clock = new LogClock()
