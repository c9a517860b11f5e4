import { describe, expect, test } from 'vitest'

import { cutIntoParts, originOf } from './parts'

const part = (start: number, end: number, source: string) => ({
  of: 'message' as const, source, start, end, sha256: '', reusedFrom: null,
})

describe('a prompt is cut into its parts', () => {
  test('by bytes of UTF-8, whatever is in it', () => {
    const text = 'añ🙂b'
    const cut = cutIntoParts(text, 'message', [part(3, 7, 'second'), part(0, 3, 'first'), part(7, 8, 'third')])
    expect(cut.map((one) => [one.source, one.text])).toEqual([['first', 'añ'], ['second', '🙂'], ['third', 'b']])
  })

  test('those of the other text are left aside', () => {
    expect(cutIntoParts('x', 'systemPrompt', [part(0, 1, 'x')])).toEqual([])
  })
})

test.each([
  ['separator', null],
  ['task', 'log'],
  ['script:identity', 'run'],
  ['sharedContext:branch', 'run'],
  ['preamble', 'tree'],
  ['rules', 'configuration'],
  ['bootstrap:AGENTS.md', 'configuration'],
])('a part from %s leads to %s', (source, view) => {
  const origin = originOf(source, { runId: 'r', requesterSessionKey: 'agent:main:main', configRevision: 3 })
  expect(origin?.view ?? null).toBe(view)
})
