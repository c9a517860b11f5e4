import { expect, test } from 'vitest'

import { textOf, titleOf, toolText } from './entries'

test('an entry has a title', () => {
  expect(titleOf({ kind: 'message', body: { role: 'assistant', text: 'hello' } })).toBe('Assistant')
  expect(titleOf({ kind: 'tool', body: { name: 'bash', input: null, output: null } })).toBe('Tool: bash')
  expect(titleOf({ kind: 'progress', body: { text: 'half' } })).toBe('Progress')
})

test('usage reads as numbers, and an unknown body as JSON', () => {
  expect(textOf({ kind: 'usage', body: { inputTokens: 1_200, outputTokens: 34, model: 'acme/big' } })).toBe('1,200 tokens in, 34 out, acme/big')
  expect(textOf({ kind: 'message', body: { role: 'user', text: 'hello' } })).toBe('hello')
  expect(textOf({ kind: 'session', body: { id: 1 } })).toBe('{\n  "id": 1\n}')
})

test.each([
  ['{"command":"ls -l\\ncat notes","timeout":5}', 'command: ls -l\ncat notes\ntimeout: 5'],
  ['plain "text"\n', 'plain "text"\n'], ['[1,2]', '[1,2]'], [null, ''],
])('a tool text %s reads as %s', (value, expected) => expect(toolText(value)).toBe(expected))
