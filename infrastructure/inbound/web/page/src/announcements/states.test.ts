import { expect, test } from 'vitest'

import type { AnnouncementView, DeliveryView } from '../api/shapes'
import { redrivable, waysOf } from './states'

const way = (webhook: string, state: DeliveryView['state'], attempts: number, parkedFor: DeliveryView['parkedFor'] = null): DeliveryView =>
  ({ webhook, state, attempts, parkedFor, statusCode: null, error: null, nextAttemptAt: null })
const DELIVERIES = [
  way('a', 'delivered', 1), way('b', 'delivered', 3), way('c', 'due', 0), way('d', 'due', 2),
  way('e', 'parked', 4, 'attempts'), way('f', 'parked', 0, 'erased'), way('g', 'parked', 0, 'not_configured'),
]

test('each way to a webhook is told', () => {
  expect(waysOf(DELIVERIES)).toBe(
    'a: delivered, b: delivered at attempt 3, c: due, d: due again after 2, e: parked after 4, f: parked after 0, g: parked after 0',
  )
  expect(waysOf([])).toBe('')
})

test('what is parked can be sent again, unless it was erased', () => {
  expect(redrivable({ deliveries: DELIVERIES } as AnnouncementView)).toEqual(['e', 'g'])
})
