import { expect, test } from 'vitest'

import type { RunSummary, RunTotalsView } from '../api/shapes'
import { COLUMNS, columnsAt, columnsText, DEFAULT_COLUMNS, readColumns } from './columns'
import { headLine, totalsOfRows, usedBy, usedText } from './sums'
import { readViews, writeViews } from './saved'

const NOTHING: RunTotalsView = {
  runs: 0, inputTokens: 0, outputTokens: 0, estimatedCostUsd: null, models: 0, unpricedModels: 0, statuses: {}, agents: {}, statusesByAgent: {}, rules: {}, usageByAgent: [], usageByDay: [], runningNotSummed: 0, countedTo: null,
}

test.each<[Partial<RunTotalsView>, string, string]>([
  [{}, '0 runs', ''],
  [{ runs: 1 }, '1 run', ''],
  [
    { runs: 42, inputTokens: 1_200_000, outputTokens: 345, estimatedCostUsd: 3.4, models: 2 },
    '42 runs · 1.20 M tokens · $3.40',
    '1,200,000 tokens in, 345 out. The cost is estimated from the configured prices.',
  ],
  [
    { runs: 2, inputTokens: 30, estimatedCostUsd: 0.5, models: 2, unpricedModels: 1 },
    '2 runs · 30 tokens · $0.5000 (partial)',
    '30 tokens in, 0 out. The cost is estimated from the configured prices. 1 of 2 models has no price.',
  ],
  [
    { runs: 5, inputTokens: 30, estimatedCostUsd: 0.5, models: 1, statuses: { done: 2, running: 3 } },
    '5 runs · 30 tokens · $0.5000 · with 3 running so far',
    '30 tokens in, 0 out. The cost is estimated from the configured prices.',
  ],
  [{ runs: 5, inputTokens: 30, statuses: { running: 3 }, runningNotSummed: 2 }, '5 runs · 30 tokens · with 1 of 3 running so far', '30 tokens in, 0 out.'],
  [{ runs: 3, statuses: { running: 3 } }, '3 runs', ''],
  [{ runs: 10_000, countedTo: 77 }, 'the newest 10,000 runs', 'Counted back to position 77; older runs are not counted.'],
])('the head line %#', (totals, text, hint) => {
  expect(headLine({ ...NOTHING, ...totals })).toEqual({ text, hint })
})

test('chosen runs have a sum, which says what it leaves out', () => {
  const run = (status: string, costs: (number | null)[]): RunSummary => ({
    status, estimatedCostUsd: costs.some((cost) => cost !== null) ? costs.reduce<number>((sum, cost) => sum + (cost ?? 0), 0) : null,
    usage: costs.length === 0 ? null : { inputTokens: 1_000, outputTokens: 100, models: costs.map((costUsd, index) => ({ model: `m${index}`, costUsd })) },
  }) as unknown as RunSummary
  const text = (...runs: RunSummary[]): string => usedText(usedBy(runs)).parts.join(' · ')
  expect(text(run('done', [0.5]), run('failed', [1, 2]))).toBe('2,200 tokens · $3.50')
  expect(text(run('done', [0.5]), run('done', [1, null]), run('refused', []))).toBe('2,200 tokens · $1.50 (partial)')
  expect(usedText(usedBy([run('done', [1, null]), run('done', [1])])).hints).toContain('1 of 2 models has no price.')
  expect(text(run('running', [0.5]), run('running', []))).toBe('1,100 tokens · $0.5000 · with 1 of 2 running so far')
  expect(text(run('refused', []))).toBe('')
  // Live rows: one that has just begun has used nothing.
  expect(headLine(totalsOfRows([run('running', [0.5]), run('running', [])])).text).toBe('2 runs · 1,100 tokens · $0.5000 · with 2 running so far')
})

test('columns are read as they were written', () => {
  expect(DEFAULT_COLUMNS).toBe('status,agent,label,task,elapsed,tokens,cost,created')
  expect(columnsText(['run', 'status'])).toBe('status,run')
  expect([...readColumns('run,status,nothing')]).toEqual(['status', 'run'])
  for (const text of [null, '', 'nothing', ',,']) expect(columnsText(readColumns(text))).toBe(DEFAULT_COLUMNS)
  expect(readColumns(COLUMNS.map((column) => column.id).join(',')).size).toBe(COLUMNS.length)
})

test('saved views are read as they were written, and nothing else is', () => {
  const views = [{ name: 'late', query: 'status=failed&q=tide' }, { name: '<b>', query: 'labelPrefix=%3Cb%3E' }]
  expect(readViews(writeViews(views))).toEqual(views)
  for (const text of [null, '', '{', '{}', '[1, null, {"name": 1}]', '[{"name": "", "query": "a"}]']) expect(readViews(text)).toEqual([])
  expect(readViews(writeViews([{ name: 'x'.repeat(99), query: 'a=b' }]))).toEqual([{ name: 'x'.repeat(60), query: 'a=b' }])
  expect(readViews(writeViews(Array.from({ length: 99 }, (_, n) => ({ name: `v${n}`, query: 'a=b' }))))).toHaveLength(50)
})

test.each([true, false])('the default columns have room beside each other in 1,024 pixels, live: %s', (isLive) => {
  const widths = columnsAt(isLive).filter((column) => column.isDefault).map((column) => parseFloat(column.width.replace('minmax(', '')))
  // The box that chooses a row, a gap around each column, and the padding of the page.
  const rem = widths.reduce((sum, width) => sum + width + 0.8, 1.4 + 2 * 0.8)
  expect(rem * 14).toBeLessThanOrEqual(1_024 - 30)
})
