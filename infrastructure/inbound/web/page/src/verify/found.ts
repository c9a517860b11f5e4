// What a verification found, or how far it is, in words.

import { count, counted } from '../parts/text'
import type { VerificationView } from '../api/shapes'

type State = VerificationView['state']

/** Each state as a sign, in words, and how it is coloured. */
export const STATES: Record<State, { sign: string; words: string; tone: string }> = {
  running: { sign: '●', words: 'running', tone: 'busy' },
  right: { sign: '✓', words: 'nothing differs', tone: 'good' },
  different: { sign: '✗', words: 'something differs', tone: 'bad' },
  stopped: { sign: '■', words: 'stopped', tone: 'warn' },
  failed: { sign: '!', words: 'failed', tone: 'warn' },
  'broken-off': { sign: '?', words: 'interrupted', tone: 'warn' },
}

/** Which positions were found right: `positions 1 to 18,342`, or that none was. */
export function rangeOf({ began, checked }: VerificationView): string {
  return checked > began ? `positions ${count(began + 1)} to ${count(checked)}` : 'no position'
}

/** How far it is: `5,000 of 18,342 events`. */
export function progressOf({ checked, last }: VerificationView): string {
  return last === null ? 'looking at the end of the log' : `${count(checked)} of ${counted(last, 'event')}`
}

/** What was compared beside the chain. */
export function comparedOf({ runRows, sessionRows, contents, transcripts, erased }: VerificationView): string {
  const gone = erased === 0 ? '' : `; ${count(erased)} erased with their keys`
  return `${counted(runRows, 'run row')}, ${counted(sessionRows, 'session row')}, ${counted(contents, 'text')} and ${counted(transcripts, 'transcript')}${gone}`
}

/** Where it was looked at: the position of the difference, or the last one when it lies behind that. */
export function shownPosition(position: number, head: number): number {
  return Math.min(position, head)
}
