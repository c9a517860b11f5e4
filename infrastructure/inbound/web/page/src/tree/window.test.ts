import { describe, expect, test } from 'vitest'

import { foldedAxis } from './axis'
import { AxisWindow } from './window.svelte'

describe('the window on an axis', () => {
  const axis = foldedAxis([{ start: 0, end: 1_000 }])

  test('keeps the place under the pointer while it zooms', () => {
    const sight = new AxisWindow(() => axis)
    sight.zoomBy(4, 0.25)
    expect([sight.x(250), sight.span]).toEqual([0.25, 250])
  })
  test('never leaves the axis', () => {
    const sight = new AxisWindow(() => axis)
    sight.zoomBy(2)
    sight.moveTo(5_000)
    expect(sight.left).toBe(500)
    sight.moveTo(-1)
    expect(sight.left).toBe(0)
    sight.zoomBy(0.1)
    expect([sight.zoom, sight.left, sight.isWhole]).toEqual([1, 0, true])
  })
})
