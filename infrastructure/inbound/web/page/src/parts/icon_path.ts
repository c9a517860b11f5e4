// The outline of an icon as one path: an element of the document each, which is quick to make.

import type { IconNode } from 'lucide'

/** Return the `d` of a path that draws all shapes of an icon. */
export function pathOf(icon: IconNode): string {
  return icon.map(([shape, attributes]) => outline(shape, attributes as Record<string, string | number | undefined>)).join('')
}

function outline(shape: string, attributes: Record<string, string | number | undefined>): string {
  const number = (name: string): number => Number(attributes[name] ?? 0)
  if (shape === 'path') return String(attributes['d']).replace(/^m/, 'M0 0m')
  if (shape === 'circle') return arcs(number('cx'), number('cy'), number('r'))
  if (shape === 'rect') return rectangle(number('x'), number('y'), number('width'), number('height'), number('rx'))
  throw new Error(`an icon has the shape ${shape}, which is drawn nowhere else`)
}

function arcs(x: number, y: number, radius: number): string {
  const half = `a${radius} ${radius} 0 0 1 `
  return `M${x - radius} ${y}${half}${2 * radius} 0${half}${-2 * radius} 0`
}

function rectangle(x: number, y: number, width: number, height: number, radius: number): string {
  const corner = (right: number, down: number): string => `a${radius} ${radius} 0 0 1 ${right * radius} ${down * radius}`
  const [across, down] = [width - 2 * radius, height - 2 * radius]
  return `M${x + radius} ${y}h${across}${corner(1, 1)}v${down}${corner(-1, 1)}h${-across}${corner(-1, -1)}v${-down}${corner(1, -1)}`
}
