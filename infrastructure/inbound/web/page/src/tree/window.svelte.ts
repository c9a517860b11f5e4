// The window on a time axis: zoom and left edge, shared by all bars of a view.

import type { Axis } from './axis'

const ZOOM_MAX = 1e6
export const ZOOM_STEP = 1.5

export class AxisWindow {
  zoom = $state(1)
  left = $state(0)
  readonly #axis: () => Axis

  constructor(axis: () => Axis) {
    this.#axis = axis
  }

  /** The length of the axis in sight. */
  get span(): number {
    return this.#axis().length / this.zoom
  }

  get isWhole(): boolean {
    return this.zoom <= 1
  }

  /** Return where an instant is, as a share of the width in sight. */
  x(instant: number): number {
    return (this.#axis().place(instant) - this.left) / this.span
  }

  /** Zoom around a place, given as a share of the width in sight. */
  zoomBy(by: number, around = 0.5): void {
    const fixed = this.left + around * this.span
    this.zoom = Math.max(1, Math.min(this.zoom * by, ZOOM_MAX))
    this.moveTo(fixed - around * this.span)
  }

  moveTo(left: number): void {
    this.left = Math.max(0, Math.min(left, this.#axis().length - this.span))
  }

  /** Show the whole axis. */
  reset(): void {
    this.zoom = 1
    this.left = 0
  }
}
