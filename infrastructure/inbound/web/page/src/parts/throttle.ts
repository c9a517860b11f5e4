// Acts on what changes often: soon after the first change, and then from time to time.

export class Throttle<T> {
  #newest: T | undefined
  #actedAt = -Infinity
  #timer: ReturnType<typeof setTimeout> | undefined
  readonly #act: (value: T) => void
  readonly #pauseMs: number
  readonly #everyMs: number

  /** Call `act` with the newest value, `pauseMs` after the first change and at most once per `everyMs`. */
  constructor(act: (value: T) => void, pauseMs: number, everyMs: number) {
    this.#act = act
    this.#pauseMs = pauseMs
    this.#everyMs = everyMs
  }

  give(value: T): void {
    this.#newest = value
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#actedAt = performance.now()
      this.#act(this.#newest as T)
    }, Math.max(this.#pauseMs, this.#actedAt + this.#everyMs - performance.now()))
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
