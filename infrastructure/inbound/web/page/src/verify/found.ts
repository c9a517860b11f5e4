// States, progress and results of verifications as texts.

import { count, counted } from '../parts/text'
import type { VerificationView } from '../api/shapes'

type State = VerificationView['state']

/** Sign, text and color of each state. */
export const STATES: Record<State, { sign: string; words: string; tone: string }> = {
  running: { sign: '●', words: 'running', tone: 'busy' },
  right: { sign: '✓', words: 'nothing differs', tone: 'good' },
  different: { sign: '✗', words: 'something differs', tone: 'bad' },
  stopped: { sign: '■', words: 'stopped', tone: 'warn' },
  failed: { sign: '!', words: 'failed', tone: 'warn' },
  'broken-off': { sign: '?', words: 'interrupted', tone: 'warn' },
}

/** Return the verified positions: `positions 1 to 18,342`, or `no position`. */
export function rangeOf({ began, checked }: VerificationView): string {
  return checked > began ? `positions ${count(began + 1)} to ${count(checked)}` : 'no position'
}

/** Return the progress: `5,000 of 18,342 events`. */
export function progressOf({ checked, last }: VerificationView): string {
  return last === null ? 'reading the head of the log' : `${count(checked)} of ${counted(last, 'event')}`
}

/** Return what was compared beside the hashes of events. */
export function comparedOf({ runRows, sessionRows, contents, transcripts, erased }: VerificationView): string {
  const gone = erased === 0 ? '' : `; ${count(erased)} erased with their keys`
  return `${counted(runRows, 'run row')}, ${counted(sessionRows, 'session row')}, ${counted(contents, 'text')} and ${counted(transcripts, 'transcript')}${gone}`
}

/** Return the position to show for a difference: the head if the difference is after it. */
export function shownPosition(position: number, head: number): number {
  return Math.min(position, head)
}
