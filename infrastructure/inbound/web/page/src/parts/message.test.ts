import { expect, test } from 'vitest'

import { ended, pieces } from './message'

const ID = '56ac32fb-8148-4276-b743-ccf1f2581fa4'

test('a message begins with a capital letter, and runs in it are told apart', () => {
  expect(pieces(`run ${ID} has not reached ended`)).toEqual([{ text: 'Run ', isRun: false }, { text: ID, isRun: true }, { text: ' has not reached ended', isRun: false }])
  expect(pieces(`several runs have that name: ${ID}, ${ID}`).filter((one) => one.isRun)).toHaveLength(2)
  expect(pieces(`session ${ID} is unknown`)).toEqual([{ text: `Session ${ID} is unknown`, isRun: false }])
})

test('a message ends with a mark', () => {
  expect(['run not found', 'Not now.', 'Reading …'].map(ended)).toEqual(['run not found.', 'Not now.', 'Reading …'])
})
