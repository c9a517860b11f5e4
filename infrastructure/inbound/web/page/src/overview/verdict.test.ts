import { expect, test } from 'vitest'

import { verdictOf } from './verdict'

test('the line names what is wrong, and that nothing is', () => {
  const counts = { ended: { statuses: { done: 3, failed: 5, timeout: 2, refused: 1_204, stopped: 9 } }, live: { parkedDeliveries: 1 } }
  expect(verdictOf(counts)).toBe('7 failed, 1,204 refused, 1 delivery parked')
  expect(verdictOf({ ended: { statuses: { done: 3, stopped: 1 } }, live: { parkedDeliveries: 0 } })).toMatch(/^All well/)
})
