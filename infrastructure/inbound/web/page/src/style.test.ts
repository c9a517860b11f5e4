import { expect, test } from 'vitest'

test('sizes of type are variables of the style sheet', () => {
  const sources = import.meta.glob<string>('./**/*.svelte', { eager: true, query: '?raw', import: 'default' })
  const own = Object.entries(sources).filter(([, source]) => /\bfont(-size)?: [^;}\n]*?\d(px|r?em)\b/.test(source.replaceAll(/\/\d+px/g, '')))
  expect(Object.keys(sources).length).toBeGreaterThan(50)
  expect(own.map(([path]) => path)).toEqual([])
})
