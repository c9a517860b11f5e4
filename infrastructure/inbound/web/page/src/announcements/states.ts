// What became of announcements, in words.

import type { AnnouncementView, DeliveryView } from '../api/shapes'

export const STATES = ['parked', 'due', 'delivered', 'acknowledged'] as const
export type LedgerState = (typeof STATES)[number]

/** What each state means; the first two are about webhooks, the others about the inbox. */
export const MEANINGS: Record<LedgerState, string> = {
  parked: 'gave up after all attempts',
  due: 'will be sent',
  delivered: 'in the inbox, not read',
  acknowledged: 'read by the session',
}

/** How far it has come on its way to the webhooks: `gateway: parked after 4, ops: delivered`. */
export function waysOf(deliveries: DeliveryView[]): string {
  return deliveries.map((one) => `${one.webhook}: ${wayOf(one)}`).join(', ')
}

function wayOf({ state, attempts }: DeliveryView): string {
  if (state === 'delivered') return attempts > 1 ? `delivered at attempt ${attempts}` : 'delivered'
  if (state === 'parked') return `parked after ${attempts}`
  return attempts === 0 ? 'due' : `due again after ${attempts}`
}

/** The webhooks that it can be sent to again. What was erased cannot. */
export function redrivable({ deliveries }: AnnouncementView): string[] {
  return deliveries.filter((one) => one.state === 'parked' && one.parkedFor !== 'erased').map((one) => one.webhook)
}
