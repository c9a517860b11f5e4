import { expect, test } from 'vitest'

import type { RunSummary } from '../api/shapes'
import { each, outcomesText, stopText } from './bulk'

const run = (status: RunSummary['status'], endedAt: string | null = null): RunSummary => ({ status, endedAt }) as RunSummary
const done = run('done', '2026-03-01T09:00:00Z')

test.each<[RunSummary[], string]>([
  [[run('running')], '1 running run will be stopped, with everything that it has spawned.'],
  [[run('running'), run('running')], '2 running runs will be stopped, with everything that they have spawned.'],
  [
    [run('running'), run('queued'), run('running'), run('waiting'), done],
    '2 running runs, 1 queued run and 1 waiting run will be stopped, with everything that they have spawned. 1 chosen run is over and stays as it is.',
  ],
  [[run('running'), done, run('refused')], '1 running run will be stopped, with everything that it has spawned. 2 chosen runs are over and stay as they are.'],
])('what a stop does %#', (runs, text) => {
  expect(stopText(runs)).toBe(text)
})

test('outcomes are counted', () => {
  expect(outcomesText([])).toBe('')
  expect(outcomesText([{ state: 'done', text: 'a' }, { state: 'failed', text: 'b' }, { state: 'done', text: 'c' }])).toBe('2 done, 1 failed')
})

test('each is done once, a few at a time', async () => {
  const begun: number[] = []
  let atWork = 0
  let most = 0
  await each([1, 2, 3, 4, 5, 6, 7], 3, async (one) => {
    begun.push(one)
    most = Math.max(most, (atWork += 1))
    await new Promise((resolve) => setTimeout(resolve, 1))
    atWork -= 1
  })
  expect(begun).toEqual([1, 2, 3, 4, 5, 6, 7])
  expect(most).toBe(3)
})
