import { expect, test } from 'vitest'

import { activityAt } from './stages'

test('a session that was created waits where its run depends on others', () => {
  expect(activityAt('session-created', 2)).toBe('waiting')
  expect(activityAt('session-created', 0)).toBe('being queued')
})

test('a stage tells what goes on until the next one', () => {
  expect((['requested', 'scripts-resolved', 'queued', 'started', 'ended', 'archived'] as const).map((one) => activityAt(one, 0)))
    .toEqual(['scripts', 'steps', 'queued', 'running', 'announcing', ''])
})
