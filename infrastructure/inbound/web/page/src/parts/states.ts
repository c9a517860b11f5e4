// The states of a run: sign, color and pattern of each. Views that show states take them from here.

import type { RunSummary } from '../api/shapes'

export type State = RunSummary['status']
/** How a bar of a state is filled. Bars with the same pattern differ in luminance. */
export type Pattern = 'solid' | 'pale' | 'dots' | 'diagonal' | 'horizontal' | 'vertical' | 'hollow' | 'cross'

/** All states, in the order of a run's life. */
export const STATES: readonly State[] = [
  'preparing', 'waiting', 'queued', 'running', 'done', 'failed', 'timeout', 'stopped', 'unknown', 'refused',
]

export const SIGNS: Record<State, string> = {
  preparing: '◌', waiting: '◷', queued: '◔', running: '●', done: '✓',
  failed: '✗', timeout: '◴', stopped: '■', unknown: '?', refused: '⊘',
}

export const PATTERNS: Record<State, Pattern> = {
  preparing: 'dots', waiting: 'vertical', queued: 'pale', running: 'solid', done: 'solid',
  failed: 'solid', timeout: 'diagonal', stopped: 'horizontal', unknown: 'cross', refused: 'hollow',
}

/** Return the CSS value of a state's color. A canvas needs `stateColors()`. */
export function stateColor(state: State): string {
  return `var(--state-${state})`
}

/** Return the colors as a canvas takes them, in the theme of this moment. */
export function stateColors(): Record<State, string> {
  return colors(Object.fromEntries(STATES.map((state) => [state, `state-${state}`])) as Record<State, string>)
}

/** Return colors of the style sheet as a canvas takes them, in the theme of this moment.
 * `names` are those of custom properties, without `--`. */
export function colors<Name extends string>(names: Record<Name, string>): Record<Name, string> {
  const probe = document.createElement('span')
  document.body.append(probe)
  const computed = getComputedStyle(probe)
  const found = Object.entries<string>(names).map(([name, property]) => {
    probe.style.color = `var(--${property})`
    return [name, computed.color]
  })
  probe.remove()
  return Object.fromEntries(found) as Record<Name, string>
}
