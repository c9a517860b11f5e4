// How often the overview asks again: while the log grows, while the tab is seen, and never faster than the
// server answers.

import { moment } from '../moment/moment.svelte'

const EVERY_MS = 1_000
const MINUTE_MS = 60_000
/** A summary that takes long is asked for less often: it keeps the server busy a fifth of the time at most. */
const PAUSES_PER_ANSWER = 4

export class Pace {
  /** Changes when the log has grown, at most once a second. */
  turn = $state(0)
  /** Changes every minute: what is "the last hour" moves on, even if the log does not. */
  minute = $state(0)

  #turnedAt = performance.now()
  #tookMs = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  /** `isBusy` tells whether an answer is under way. */
  constructor(isBusy: () => boolean) {
    let seen = moment.refresh
    $effect(() => {
      const askedAt = performance.now()
      if (!isBusy()) return undefined
      return () => { this.#tookMs = performance.now() - askedAt }
    })
    $effect(() => {
      if (moment.refresh === seen || !moment.isLive) return
      seen = moment.refresh
      this.#turnSoon()
    })
    $effect(() => {
      const minutes = setInterval(() => { if (!document.hidden && moment.isLive) this.minute += 1 }, MINUTE_MS)
      return () => {
        clearInterval(minutes)
        clearTimeout(this.#timer)
      }
    })
  }

  #turnSoon(): void {
    if (this.#timer !== undefined) return
    const pauseMs = Math.max(EVERY_MS, PAUSES_PER_ANSWER * this.#tookMs)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      if (document.hidden) {
        this.#turnSoon()
        return
      }
      this.#turnedAt = performance.now()
      this.turn += 1
    }, document.hidden ? EVERY_MS : Math.max(0, this.#turnedAt + pauseMs - performance.now()))
  }
}
