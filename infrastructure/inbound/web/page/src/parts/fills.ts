// The patterns of `states.ts` on a canvas. In elements they are the classes `fill-…` of style.css.

import { PATTERNS, type Pattern, type State } from './states'

const TILE_PX = 6
const PALE_ALPHA = 0.35

/** Return what fills a bar of a state in a color; null for a hollow one, of which only the edge is drawn.
 * Keep it while the colors stay: it costs a canvas. */
export function fillOf(context: CanvasRenderingContext2D, state: State, color: string): string | CanvasPattern | null {
  const pattern = PATTERNS[state]
  if (pattern === 'solid') return color
  if (pattern === 'hollow') return null
  const tile = document.createElement('canvas')
  tile.width = tile.height = TILE_PX
  const drawing = tile.getContext('2d')
  if (drawing === null) return color
  drawing.fillStyle = drawing.strokeStyle = color
  draw(drawing, pattern)
  return context.createPattern(tile, 'repeat') ?? color
}

/** Return true if a bar of a state needs an edge to be seen as one. */
export function hasEdge(state: State): boolean {
  return PATTERNS[state] !== 'solid'
}

function draw(drawing: CanvasRenderingContext2D, pattern: Exclude<Pattern, 'solid' | 'hollow'>): void {
  if (pattern === 'pale') {
    drawing.globalAlpha = PALE_ALPHA
    drawing.fillRect(0, 0, TILE_PX, TILE_PX)
  } else if (pattern === 'dots') drawing.fillRect(1, 1, 2, 2)
  else if (pattern === 'horizontal') drawing.fillRect(0, 0, TILE_PX, TILE_PX / 2)
  else if (pattern === 'vertical') drawing.fillRect(0, 0, TILE_PX / 3, TILE_PX)
  else {
    drawing.lineWidth = pattern === 'cross' ? 1 : 2
    drawing.beginPath()
    for (const from of [-TILE_PX, 0, TILE_PX]) {
      drawing.moveTo(from - 1, TILE_PX + 1)
      drawing.lineTo(from + TILE_PX + 1, -1)
      if (pattern !== 'cross') continue
      drawing.moveTo(from - 1, -1)
      drawing.lineTo(from + TILE_PX + 1, TILE_PX + 1)
    }
    drawing.stroke()
  }
}
