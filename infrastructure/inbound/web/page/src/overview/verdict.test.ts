import { expect, test } from 'vitest'

import { verdictOf } from './verdict'

test('each part of the line names what is wrong and leads to its list', () => {
  const counts = { ended: { statuses: { done: 3, failed: 5, timeout: 2, refused: 1_204, stopped: 9 } }, live: { parkedDeliveries: 1 } }
  expect(verdictOf(counts, '1h')).toEqual([
    { text: '5 failed', view: 'runs', filters: [['status', 'failed'], ['endedSince', '1h']] },
    { text: '2 timed out', view: 'runs', filters: [['status', 'timeout'], ['endedSince', '1h']] },
    { text: '1,204 refused', view: 'runs', filters: [['status', 'refused'], ['endedSince', '1h']] },
    { text: '1 delivery parked', view: 'announcements', filters: [['state', 'parked']] },
  ])
  expect(verdictOf({ ended: { statuses: { done: 3, stopped: 1 } }, live: { parkedDeliveries: 0 } }, '1h')).toEqual([])
})
