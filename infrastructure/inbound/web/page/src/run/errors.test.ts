import { expect, test } from 'vitest'

import { errorOf } from './errors'

test('the last line of a traceback is its headline', () => {
  const text = 'Traceback (most recent call last):\n  File "x.py", line 1\nTimeoutError: tide service\n\n'
  expect(errorOf(text)).toEqual({ headline: 'TimeoutError: tide service', whole: text, lines: 3 })
})

test('a short error is its own headline', () => {
  expect(errorOf('stopped by admin')).toEqual({ headline: 'stopped by admin', whole: null, lines: 1 })
})

test('a long line is cut, and whole on demand', () => {
  const text = 'x'.repeat(1_000)
  expect(errorOf(text)).toMatchObject({ headline: `${'x'.repeat(300)} …`, whole: text })
})
