import { expect, test } from 'vitest'

import { errorLine } from './error_line'

test.each([
  ['', ''],
  ['\n \n', ''],
  ['no tide', 'no tide'],
  ['first\nlast  line\n\n', 'last line'],
  ['Traceback (most recent call last):\n  File "a.py", line 1\n    x()\nTimeoutError: tide service\nmore of it', 'TimeoutError: tide service'],
  ['before\nTraceback (most recent call last):\n  File "a.py"\n    x()', 'x()'],
  ['Traceback (most recent call last):\nValueError: a\nDuring it:\nTraceback (most recent call last):\n  File\nKeyError: b', 'KeyError: b'],
])('%j', (text, line) => {
  expect(errorLine(text)).toBe(line)
})
