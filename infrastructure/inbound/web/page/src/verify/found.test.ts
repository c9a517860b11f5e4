import { expect, test } from 'vitest'

import type { VerificationView } from '../api/shapes'
import { comparedOf, progressOf, rangeOf, shownPosition } from './found'

const verification = (of: Partial<VerificationView>): VerificationView =>
  ({ began: 0, checked: 0, last: null, runRows: 4, sessionRows: 2, contents: 1_200, transcripts: 1, erased: 0, ...of }) as VerificationView

test('the positions that were found right are told, and that none was', () => {
  expect(rangeOf(verification({ checked: 18_342 }))).toBe('positions 1 to 18,342')
  expect(rangeOf(verification({ began: 5_000, checked: 18_342 }))).toBe('positions 5,001 to 18,342')
  expect(rangeOf(verification({}))).toBe('no position')
})

test('how far it is, is not known before the end of the log is', () => {
  expect(progressOf(verification({}))).toBe('looking at the end of the log')
  expect(progressOf(verification({ checked: 5_000, last: 18_342 }))).toBe('5,000 of 18,342 events')
})

test('what is erased is told where something is', () => {
  expect(comparedOf(verification({}))).toBe('4 run rows, 2 session rows, 1,200 texts and 1 transcript')
  expect(comparedOf(verification({ erased: 3 }))).toMatch(/; 3 erased with their keys$/)
})

test('what is missing behind the end of the log is shown at its end', () => {
  expect([shownPosition(7, 9), shownPosition(10, 9)]).toEqual([7, 9])
})
