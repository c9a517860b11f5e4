import { expect, test } from 'vitest'

import { activityAt, startOf } from './stages'

test('a session that was created waits where its run depends on others', () => {
  expect(activityAt('session-created', 2)).toBe('waiting')
  expect(activityAt('session-created', 0)).toBe('being queued')
})

test('a stage tells what goes on until the next one', () => {
  expect((['requested', 'scripts-resolved', 'queued', 'started', 'ended', 'archived'] as const).map((one) => activityAt(one, 0)))
    .toEqual(['scripts', 'steps', 'queued', 'running', 'announcing', ''])
})

test.each([
  ['refused', null, true, 'The run was refused: its child never started.'],
  ['stopped', '2026-03-01T09:00:00Z', true, 'The run ended before its child started.'],
  ['queued', null, true, 'The child had not started yet.'],
  ['queued', null, false, 'The child had not started at this moment.'],
] as const)('a %s run without a start explains it', (status, endedAt, isLive, text) => {
  expect(startOf({ status, endedAt }, isLive)).toBe(text)
})
