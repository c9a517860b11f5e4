import { describe, expect, test } from 'vitest'

import { clockAfter, count, counted, cut, dollars, duration, millisecondsBetween, quoted, tokens, unpriced, visible } from './text'

describe('a text of others', () => {
  test('shows what would hide in it or turn it round', () => {
    expect(visible('a\u202eb\u0007\u200b\ufeff')).toBe('a⟨202E⟩b⟨0007⟩⟨200B⟩⟨FEFF⟩')
    expect(visible('two\nlines\tand a tab')).toBe('two\nlines\tand a tab')
  })

  test('is cut where it is too long', () => {
    expect(cut('abc', 2)).toEqual({ text: 'ab', left: 1 })
    expect(cut('abc', 3)).toEqual({ text: 'abc', left: 0 })
  })

  test('is one argument for a shell, whatever is in it', () => {
    expect(quoted('pos:42')).toBe('pos:42')
    expect(quoted("it's $(x)")).toBe("'it'\\''s $(x)'")
    expect(quoted('')).toBe("''")
  })
})

test('signs that nobody sees are seen', () => {
  expect(visible('a\u{e0041}b\u00adc\u3164d')).toBe('a⟨E0041⟩b⟨00AD⟩c⟨3164⟩d')
})

test.each([[0, '0 ms'], [999, '999 ms'], [1500, '1.5 s'], [61_000, '1 min 1 s'], [3_700_000, '1 h 1 min'], [200_000_000, '2 d 7 h']])(
  '%d milliseconds read as %s', (milliseconds, text) => expect(duration(milliseconds)).toBe(text),
)

test.each([[0, 'event', '0 events'], [1, 'newer event', '1 newer event'], [2_000, 'entry', '2,000 entries'], [1, 'entry', '1 entry'], [3, 'key', '3 keys']])(
  '%d of %s read as %s', (of, noun, text) => expect(counted(of, noun)).toBe(text),
)

test.each([['00.000900Z', '00.001100Z', 0], ['00Z', '01.999999Z', 1_999], ['00.999999Z', '02Z', 1_000]])('from %s to %s are %d ms', (from, to, took) => {
  expect(millisecondsBetween(`2026-03-01T09:00:${from}`, `2026-03-01T09:00:${to}`)).toBe(took)
})

test.each([[0, '0'], [999, '999'], [1_000, '1,000'], [-1_234_567, '-1,234,567'], [1e15, '1,000,000,000,000,000']])('%d reads as %s', (of, text) => {
  expect(count(of)).toBe(text)
})

test.each([[0, '$0.00'], [0.00001, '<$0.0001'], [0.00274, '$0.0027'], [1.239, '$1.24'], [12_345.6, '$12,345.60']])(
  '%d US dollars read as %s', (usd, text) => expect(dollars(usd)).toBe(text),
)

test.each([
  [2, 0, ''],
  [2, 1, '1 of 2 models has no price'],
  [1, 1, '1 of 1 model has no price'],
  [2_000, 1_500, '1,500 of 2,000 models have no price'],
] as const)('of %d models %d have no price', (models, without, text) => expect(unpriced(models, without)).toBe(text))

test('a clock says which day it means when that is another one', () => {
  expect(clockAfter('2026-03-01T09:00:00.5Z', '2026-03-01T23:59:59.123456Z')).toBe('23:59:59.123')
  expect(clockAfter('2026-03-01T09:00:00.5Z', '2026-03-02T00:00:01Z')).toBe('2026-03-02 00:00:01')
})

test.each([[0, '0'], [9_999, '9,999'], [10_000, '10.0 k'], [12_345, '12.3 k'], [999_499, '999 k'], [999_500, '1.00 M'], [1_203_000, '1.20 M'], [2_500_000_000, '2.50 G']])(
  '%d tokens read as %s', (of, text) => expect(tokens(of)).toBe(text),
)
