import { expect, test } from 'vitest'

import { outcomeRows } from './outcomes'

const usage = (model: string, inputTokens: number, outputTokens: number, costUsd: number | null): Record<string, unknown> => ({
  inputTokens, outputTokens, totalTokens: inputTokens + outputTokens, cacheReadTokens: 0, cacheWriteTokens: 7,
  models: [{ model, inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0, pricedAs: model, costUsd }],
})
const rows = (left: Record<string, unknown>, right: Record<string, unknown>, erased: string[] = []): Record<string, [string, string, boolean]> =>
  Object.fromEntries(outcomeRows(left, right, erased).map((row) => [row.name, [row.left, row.right, row.isSame]]))

test('a failure and a success read as figures, without JSON', () => {
  const failed = { status: 'failed', outcome: 'error', reason: 'exit', error: 'Traceback:\n  line 1\nPermissionError: locked', usage: usage('acme/large', 2_604, 100, 0.009312), estimatedCostUsd: 0.009312, runtimeMs: 47 }
  const done = { status: 'done', outcome: 'success', reason: 'exit', error: null, resultText: 'Found 84', usage: usage('acme/small', 140_950, 4_024, null), estimatedCostUsd: 0.1769481, runtimeMs: 794 }
  expect(rows(failed, done)).toEqual({
    Outcome: ['failed (exit)', 'done (exit)', false],
    Error: ['PermissionError: locked', '', false],
    Result: ['', 'Found 84', false],
    Elapsed: ['47 ms', '794 ms', false],
    Tokens: ['2,604 in, 100 out, 7 written to cache', '140,950 in, 4,024 out, 7 written to cache', false],
    Cost: ['$0.0093', '$0.1769', false],
    Models: ['acme/large, 2,604 in, 100 out, $0.0093', 'acme/small, 140,950 in, 4,024 out, no price', false],
  })
})

test('of a long result only the beginning is shown', () => {
  expect(rows({ resultText: 'line\n'.repeat(20) }, { resultText: 'x'.repeat(700) })['Result']).toEqual([`${'line\n'.repeat(8).trimEnd()} …`, `${'x'.repeat(600)} …`, false])
})

test('a refusal says why; what neither has is left out; what is erased is not the same', () => {
  const refused = { status: 'refused', rule: 'depth', reason: null, usage: null }
  expect(rows(refused, refused)).toEqual({ Outcome: ['refused: too deep', 'refused: too deep', true] })
  expect(rows({ status: 'done', resultText: null }, { status: 'done', resultText: null }, ['resultText'])['Result']).toEqual(['(erased: it may have differed)', '(erased: it may have differed)', false])
})

test('a result is shown without its Markdown, but marks alone make a difference', () => {
  expect(rows({ resultText: '## Answer\n\n- **a**' }, { resultText: 'Answer\na' })['Result']).toEqual(['Answer\na', 'Answer\na', false])
})
