import { describe, expect, test } from 'vitest'

import { conversationOf, toolLine, toolText } from './entries'

const entries = (...given: [string, Record<string, unknown>][]) =>
  given.map(([kind, body], index) => ({ sequence: index + 1, recordedAt: '2026-03-01T09:00:00Z', kind, body }))
const turns = (...given: [string, Record<string, unknown>][]) =>
  conversationOf(entries(...given)).map(({ at: _, ...turn }) => turn)

describe('a conversation', () => {
  test('has messages by role, calls of tools and notes', () => {
    expect(turns(
      ['message', { role: 'assistant', text: 'hello' }], ['tool', { name: 'bash', input: null, output: 'x' }],
      ['tool', { name: 'read', input: null, output: 'x', durationMs: 2_300 }],
      ['progress', { text: 'half' }], ['usage', { inputTokens: 1_200, outputTokens: 34, model: 'acme/big' }],
    )).toEqual([
      { sequence: 1, kind: 'message', role: 'Assistant', text: 'hello' },
      { sequence: 2, kind: 'tool', name: 'bash', input: null, output: 'x', durationMs: null },
      { sequence: 3, kind: 'tool', name: 'read', input: null, output: 'x', durationMs: 2_300 },
      { sequence: 4, kind: 'note', name: 'Progress', text: 'half' },
      { sequence: 5, kind: 'note', name: 'Usage', text: '1,200 tokens in, 34 out, acme/big' },
    ])
  })

  test('joins lines of output that follow each other', () => {
    expect(turns(['text', { text: 'one' }], ['text', { text: 'two' }], ['progress', { text: 'x' }], ['text', { text: 'three' }]).map((one) => [one.sequence, one.kind === 'tool' ? '' : one.text]))
      .toEqual([[1, 'one\ntwo'], [3, 'x'], [4, 'three']])
  })

  test('says a result that repeats the last message once', () => {
    const said: [string, Record<string, unknown>] = ['message', { role: 'assistant', text: 'done' }]
    expect(turns(said, ['usage', { inputTokens: 1, outputTokens: 1 }], ['result', { text: 'done' }]).map((one) => one.kind)).toEqual(['message', 'note'])
    expect(turns(said, ['result', { text: 'other' }])[1]).toMatchObject({ role: 'Result', text: 'other' })
  })

  test('shows a body of another form as JSON', () => {
    expect(turns(['session', { id: 1 }])).toEqual([{ sequence: 1, kind: 'note', name: 'Session', text: '{\n  "id": 1\n}' }])
  })
})

test.each([
  ['{"command":"ls -l\\ncat notes","timeout":5}', 'command:\n  ls -l\n  cat notes\ntimeout: 5'],
  ['{"edits":[{"path":"a","text":"x\\ny"},{"path":"b"}],"deep":{"list":[]}}', 'edits:\n  - path: a\n    text:\n      x\n      y\n  - path: b\ndeep:\n  list: []'],
  ['plain "text"\n', 'plain "text"\n'], ['[1,2]', '- 1\n- 2'], ['{broken', '{broken'], [null, ''], [7, '7'],
])('a tool text %s reads as %s', (value, expected) => expect(toolText(value)).toBe(expected))

test('a tool text on one line is short', () => {
  expect(toolLine('{"command":"ls -l\\ncat notes"}', 100)).toBe('ls -l cat notes')
  expect(toolLine('{"path":"notes","limit":5}', 100)).toBe('notes · limit: 5')
  expect(toolLine('x'.repeat(500), 10)).toBe('x'.repeat(10))
})
