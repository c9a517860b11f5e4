// A beat at which a view asks again for what the log does not tell: tokens of running runs, for one.

export class Beat {
  /** The number of beats so far. It stands still while the page is hidden. */
  turn = $state(0)

  /** Beat at this interval, and not at all while it is null. Call it while a component begins. */
  constructor(everyMs: () => number | null) {
    $effect(() => {
      const pauseMs = everyMs()
      if (pauseMs === null) return undefined
      const timer = setInterval(() => { if (!document.hidden) this.turn += 1 }, pauseMs)
      return () => clearInterval(timer)
    })
  }
}
