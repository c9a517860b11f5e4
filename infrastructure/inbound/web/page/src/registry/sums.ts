// The head line of the list of runs: their number, tokens and cost.

import type { RunTotalsView } from '../api/shapes'
import { runningNote } from '../parts/so_far'
import { count, counted, dollars, tokens, unpriced } from '../parts/text'

export interface HeadLine {
  text: string
  /** Explanation of the numbers and of missing parts. */
  hint: string
}

/**
 * Return `42 runs · 1.20 M tokens · $3.40`. A cost that lacks the price of a model says so, and
 * sums tell whether they have the tokens so far of running runs.
 *
 * @param listed The number of rows, if no others match: they are newer than the totals.
 */
export function headLine(totals: RunTotalsView, listed: number | null): HeadLine {
  const parts = [counted(listed ?? totals.runs, 'run')]
  const hints: string[] = []
  const used = totals.inputTokens + totals.outputTokens
  if (totals.countedTo !== null && listed === null) {
    parts[0] = `the newest ${parts[0]}`
    hints.push(`Counted back to position ${count(totals.countedTo)}; older runs are not counted.`)
  }
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
  if (running > 0 && parts.length > 1) parts.push(runningNote(running, totals.runningNotSummed))
  return { text: parts.join(' · '), hint: hints.join(' ') }
}
