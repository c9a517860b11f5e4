// Actions on several selected runs at once.

import type { RunSummary } from '../api/shapes'
import { counted } from '../parts/text'

export const CHOSEN_MAX = 100

/** Outcome of an action on one run, or its progress. */
export interface Outcome {
  state: 'working' | 'done' | 'failed'
  text: string
  /** The new run of a respawn. */
  newRunId?: string
}

export function isOver(run: RunSummary): boolean {
  return run.endedAt !== null || run.status === 'refused'
}

/** Return the effect of a stop on the selected runs: `2 running and 1 queued run are stopped …`. */
export function stopText(runs: readonly RunSummary[]): string {
  const going = runs.filter((run) => !isOver(run))
  const byStatus = new Map<string, number>()
  for (const run of going) byStatus.set(run.status, (byStatus.get(run.status) ?? 0) + 1)
  const parts = [...byStatus].map(([status, number]) => counted(number, `${status} run`))
  const over = runs.length - going.length
  const stopped = `${listed(parts)} will be stopped, with everything that ${going.length === 1 ? 'it has' : 'they have'} spawned.`
  if (over === 0) return stopped
  return `${stopped} ${counted(over, 'chosen run')} ${over === 1 ? 'is over and stays as it is' : 'are over and stay as they are'}.`
}

function listed(parts: string[]): string {
  return parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`
}

/** Return `2 done, 1 failed` of an action on several runs. */
export function outcomesText(outcomes: readonly Outcome[]): string {
  const parts = (['working', 'done', 'failed'] as const).map((state) => [state, outcomes.filter((one) => one.state === state).length] as const)
  return parts.filter(([, number]) => number > 0).map(([state, number]) => `${number} ${state}`).join(', ')
}

/** Run an action on each run, a few concurrently. */
export async function each<T>(items: readonly T[], atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items]
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker))
}
