// Rows keep their place for a moment while the mouse is aimed at one of them.

const AIMED_MS = 3_000

export class Aim {
  /** Whether the mouse has just moved over the rows: none may come between it and the row that it is aimed at. */
  isTaken = $state(false)
  #timer: ReturnType<typeof setTimeout> | undefined

  /** Take the aim when the mouse moves over the rows; give it up when it leaves them or rests. */
  readonly take = (event: PointerEvent): void => {
    if (event.pointerType !== 'mouse') return
    this.drop()
    this.isTaken = event.type === 'pointermove'
    if (this.isTaken) this.#timer = setTimeout(() => (this.isTaken = false), AIMED_MS)
  }

  drop(): void {
    clearTimeout(this.#timer)
  }
}
