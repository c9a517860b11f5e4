// The head line of the list of runs: their number, tokens and cost.

import type { RunSummary, RunTotalsView } from '../api/shapes'
import { runningNote, sumOf } from '../parts/so_far'
import { count, counted, dollars, tokens, unpriced } from '../parts/text'

export interface HeadLine {
  text: string
  /** Explanation of the numbers and of missing parts. */
  hint: string
}

/**
 * Return `42 runs · 1.20 M tokens · $3.40`. A cost that lacks the price of a model says so, and
 * sums tell whether they have the tokens so far of running runs.
 */
export function headLine({ runs, countedTo, ...used }: Totals): HeadLine {
  const { parts, hints } = usedText(used)
  if (countedTo === null) return { text: [counted(runs, 'run'), ...parts].join(' · '), hint: hints.join(' ') }
  return {
    text: [`the newest ${counted(runs, 'run')}`, ...parts].join(' · '),
    hint: [`Counted back to position ${count(countedTo)}; older runs are not counted.`, ...hints].join(' '),
  }
}

type Totals = Used & Pick<RunTotalsView, 'runs' | 'countedTo'>
type Used = Pick<RunTotalsView, 'inputTokens' | 'outputTokens' | 'estimatedCostUsd' | 'models' | 'unpricedModels' | 'statuses' | 'runningNotSummed'>

/** Return tokens and cost as text, with explanations. */
export function usedText(totals: Used): { parts: string[]; hints: string[] } {
  const parts: string[] = []
  const hints: string[] = []
  const used = totals.inputTokens + totals.outputTokens
  if (used > 0) {
    parts.push(`${tokens(used)} tokens`)
    hints.push(`${count(totals.inputTokens)} tokens in, ${count(totals.outputTokens)} out.`)
  }
  const missing = unpriced(totals.models, totals.unpricedModels)
  if (totals.estimatedCostUsd !== null) {
    parts.push(`${dollars(totals.estimatedCostUsd)}${missing === '' ? '' : ' (partial)'}`)
    hints.push('The cost is estimated from the configured prices.')
  }
  if (missing !== '') hints.push(`${missing}.`)
  const running = totals.statuses.running ?? 0
  if (running > 0 && parts.length > 0) parts.push(runningNote(running, totals.runningNotSummed))
  return { parts, hints }
}

/** Return the totals of live rows. A running run without usage has used nothing yet. */
export function totalsOfRows(rows: readonly RunSummary[]): Totals {
  return { ...usedBy(rows), runningNotSummed: 0, runs: rows.length, countedTo: null }
}

/** Sum what listed runs used. */
export function usedBy(runs: readonly RunSummary[]): Used {
  const models = runs.flatMap((run) => run.usage?.models ?? [])
  const running = runs.filter((run) => run.status === 'running')
  return {
    ...sumOf(runs.map((run) => ({ inputTokens: run.usage?.inputTokens ?? 0, outputTokens: run.usage?.outputTokens ?? 0, estimatedCostUsd: run.estimatedCostUsd }))),
    models: new Set(models.map((one) => one.model)).size,
    unpricedModels: new Set(models.filter((one) => one.costUsd === null).map((one) => one.model)).size,
    statuses: { running: running.length }, runningNotSummed: running.filter((run) => run.usage === null).length,
  }
}
