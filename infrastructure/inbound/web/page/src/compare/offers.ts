// Which runs to compare a run with: first one with a like task, preferably with the same label too; then the last
// one of all.

import type { Answers, RunSummary } from '../api/shapes'

export type Offerable = Pick<RunSummary, 'runId' | 'label' | 'taskPreview' | 'taskBytes'>

/** The server takes so many words of a search. */
const WORDS_MAX = 8
/** The end of a task that is cut: the same text may be cut two words earlier if its numbers are longer. */
const CUT_WORDS = 2

/** Lists have so many characters of a task. */
const PREVIEW_CHARS = 200

/** Return a run as a list has it. */
export function offerable(run: Answers['getRun']): Offerable {
  if (!('task' in run)) return run
  return { runId: run.runId, label: run.label, taskPreview: run.task === null ? null : [...run.task].slice(0, PREVIEW_CHARS).join(''), taskBytes: new TextEncoder().encode(run.task ?? '').length }
}

/** Return true if two tasks have the same words, numbers left out. Of a long task the list has the beginning. */
export function isLikeTask(one: Offerable, other: Offerable): boolean {
  const [left, right] = [wordsOf(one), wordsOf(other)]
  if (!isCut(one) && !isCut(other)) return left.length > 0 && left.join(' ') === right.join(' ')
  const length = Math.min(left.length, right.length) - CUT_WORDS
  return length > 0 && isCut(one) === isCut(other) && left.slice(0, length).join(' ') === right.slice(0, length).join(' ')
}

export interface Offer<Run> {
  run: Run
  /** What it has in common with the run: its label and a like task, a like task; null: nothing. */
  has: 'label' | 'task' | null
}

/** Return the runs to offer, of those that the list has, newest first. */
export function offered<Run extends Offerable>(run: Offerable, runs: Run[]): Offer<Run>[] {
  const others = runs.filter((other) => other.runId !== run.runId)
  const like = others.filter((other) => isLikeTask(run, other))
  const namesake = like.find((other) => run.label !== null && other.label === run.label)
  const first = namesake ?? like[0]
  const [last] = others
  return [...(first ? [{ run: first, has: namesake ? 'label' as const : 'task' as const }] : []), ...(last && last !== first ? [{ run: last, has: null }] : [])]
}

/** Return the words by which a like task can be looked for in all runs; null if there are none. */
export function questionWords(run: Offerable): string | null {
  const words = [...new Set(wordsOf(run).slice(0, isCut(run) ? -CUT_WORDS : undefined))]
  return words.sort((one, other) => other.length - one.length).slice(0, WORDS_MAX).join(' ') || null
}

function wordsOf({ taskPreview }: Offerable): string[] {
  return (taskPreview ?? '').toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '' && !/\p{N}/u.test(word))
}

function isCut({ taskPreview, taskBytes }: Offerable): boolean {
  return taskPreview !== null && taskBytes > new TextEncoder().encode(taskPreview).length
}
