import { expect, test } from 'vitest'

import type { VerificationView } from '../api/shapes'
import { comparedOf, progressOf, rangeOf, shownPosition } from './found'

const verification = (of: Partial<VerificationView>): VerificationView =>
  ({ began: 0, checked: 0, last: null, runRows: 4, sessionRows: 2, contents: 1_200, transcripts: 1, erased: 0, ...of }) as VerificationView

test('verified positions are named', () => {
  expect(rangeOf(verification({ checked: 18_342 }))).toBe('positions 1 to 18,342')
  expect(rangeOf(verification({ began: 5_000, checked: 18_342 }))).toBe('positions 5,001 to 18,342')
  expect(rangeOf(verification({}))).toBe('no position')
})

test('progress has no total before the head of the log is read', () => {
  expect(progressOf(verification({}))).toBe('reading the head of the log')
  expect(progressOf(verification({ checked: 5_000, last: 18_342 }))).toBe('5,000 of 18,342 events')
})

test('erased texts are counted if there are any', () => {
  expect(comparedOf(verification({}))).toBe('4 run rows, 2 session rows, 1,200 texts and 1 transcript')
  expect(comparedOf(verification({ erased: 3 }))).toMatch(/; 3 erased with their keys$/)
})

test('a difference after the head is shown at the head', () => {
  expect([shownPosition(7, 9), shownPosition(10, 9)]).toEqual([7, 9])
})
