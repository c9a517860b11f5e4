import { describe, expect, test } from 'vitest'

import css from '../style.css?raw'
import { PATTERNS, STATES } from './states'

const THEMES = ['light', 'dark'] as const
type Theme = (typeof THEMES)[number]
const TEXT_CONTRAST_MIN = 4.5
const NEIGHBOR_CONTRAST_MIN = 1.3

function color(name: string, theme: Theme): string {
  const found = new RegExp(`--${name}: light-dark\\((#[0-9a-f]{6}), (#[0-9a-f]{6})\\)`).exec(css)
  expect(found, `style.css has no color --${name}`).not.toBeNull()
  return found![theme === 'light' ? 1 : 2]!
}

function luminance(hex: string): number {
  const [red, green, blue] = [1, 3, 5].map((start) => {
    const part = parseInt(hex.slice(start, start + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!
}

/** Return the contrast of two colors as WCAG defines it, 1 to 21. */
function contrast(one: string, other: string): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (light! + 0.05) / (dark! + 0.05)
}

test('contrast is that of WCAG', () => {
  expect(contrast('#000000', '#ffffff')).toBeCloseTo(21)
  expect(contrast('#777777', '#ffffff')).toBeCloseTo(4.48, 2)
})

describe.each(THEMES)('in the %s theme', (theme) => {
  test.each([...STATES.map((state) => `state-${state}`), 'text', 'quiet', 'link', 'good', 'bad', 'warn', 'busy'])('--%s is readable', (name) => {
    for (const ground of ['back', 'raised', 'mark']) {
      expect(contrast(color(name, theme), color(ground, theme)), `on --${ground}`).toBeGreaterThanOrEqual(TEXT_CONTRAST_MIN)
    }
  })

  test.each(['text', 'quiet'])('--%s is readable in the past', (name) => {
    expect(contrast(color(name, theme), color('past', theme))).toBeGreaterThanOrEqual(TEXT_CONTRAST_MIN)
  })

  test('bars of two states differ in pattern or in luminance', () => {
    for (const [place, one] of STATES.entries()) {
      for (const other of STATES.slice(place + 1)) {
        if (PATTERNS[one] !== PATTERNS[other]) continue
        const differs = contrast(color(`state-${one}`, theme), color(`state-${other}`, theme))
        expect(differs, `${one} beside ${other}`).toBeGreaterThanOrEqual(NEIGHBOR_CONTRAST_MIN)
      }
    }
  })
})

test('a placeholder has the color of quiet text, which is tested above', () => {
  expect(css).toMatch(/::placeholder \{ color: var\(--quiet\); opacity: 1;/)
})

test('a chosen theme overrides that of the system', () => {
  for (const theme of THEMES) expect(css).toContain(`:root[data-theme='${theme}'] { color-scheme: ${theme}; }`)
})
