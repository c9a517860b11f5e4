// What became of announcements, in words.

import type { AnnouncementView, DeliveryView } from '../api/shapes'
import { humanName } from '../parts/names'
import type { State } from '../parts/states'
import { counted, shortId, visible } from '../parts/text'

export const STATES = ['parked', 'due', 'delivered', 'acknowledged'] as const
export type LedgerState = (typeof STATES)[number]

export const NAMES: Record<LedgerState, string> = { parked: 'Parked', due: 'Pending', delivered: 'In inbox', acknowledged: 'Read' }

/** What each state means; the first two are about webhooks, the others about the inbox. */
export const MEANINGS: Record<LedgerState, string> = {
  parked: 'Parked: no longer sent to a webhook. Redeliver it when the cause is mended',
  due: 'Pending: will be sent to a webhook',
  delivered: 'In the inbox, not read',
  acknowledged: 'Read by the session',
}

/** The state of an announcement in the inbox of its session. */
export const INBOX: Record<AnnouncementView['state'], string> = {
  none: 'None yet', pending: 'Pending', delivered: 'In inbox', acknowledged: 'Read', skipped: 'Skipped', not_required: 'Not required',
}

/** Return what the stage of a run with this announcement is called: `announced`, `announcement skipped`. */
export function announcedStep(state: AnnouncementView['state']): string {
  return state === 'skipped' || state === 'not_required' ? `announcement ${INBOX[state].toLowerCase()}` : 'announced'
}

const RUN_STATES: Record<string, State> = { success: 'done', error: 'failed', timeout: 'timeout' }

/** Return the state of a run whose announcement has this status. */
export function runState(status: string): State {
  return RUN_STATES[status] ?? 'unknown'
}

/** Return `counter · tides`: the agent, and the label or the short id of the run. */
export function runName({ childSessionKey, label, runId }: Pick<AnnouncementView, 'childSessionKey' | 'label' | 'runId'>): string {
  const detail = label ?? shortId(runId)
  return visible(childSessionKey === null ? detail : `${humanName(childSessionKey).agent} · ${detail}`)
}

const SHORT: Record<DeliveryView['state'], string> = { parked: 'Parked', due: 'Pending', delivered: 'Delivered' }

/** Return how far a delivery is: `Parked after 4 attempts (HTTP 500)`. */
export function wayText({ state, attempts, parkedFor, statusCode }: DeliveryView): string {
  if (state === 'delivered') return attempts > 1 ? `Delivered at attempt ${attempts}` : 'Delivered'
  if (state === 'due') return attempts === 0 ? 'Pending' : `Pending: ${counted(attempts, 'attempt')} failed`
  if (parkedFor === 'not_configured') return 'Parked: this webhook is no longer configured'
  if (parkedFor === 'erased') return 'Parked: the texts of the session were erased'
  if (parkedFor === 'refused') return `Parked: refused${statusCode === null ? '' : ` with HTTP ${statusCode}`}`
  return `Parked after ${counted(attempts, 'attempt')}${statusCode === null ? '' : ` (HTTP ${statusCode})`}`
}

/** Return the deliveries of an announcement in one line, what is parked first: `crm: Parked after …; chat, ops: Delivered`. In
 * short only what is worst, without the cause: `crm: Parked`. */
export function waysText(deliveries: DeliveryView[], isShort = false): string {
  const order: Record<DeliveryView['state'], number> = { parked: 0, due: 1, delivered: 2 }
  const sorted = [...deliveries].sort((one, other) => order[one.state] - order[other.state])
  const textOf = (one: DeliveryView): string => (isShort ? SHORT[one.state] : wayText(one))
  const webhooks = new Map<string, string[]>()
  for (const one of sorted) webhooks.set(textOf(one), [...(webhooks.get(textOf(one)) ?? []), visible(one.webhook)])
  return [...webhooks].slice(0, isShort ? 1 : undefined).map(([text, names]) => `${names.join(', ')}: ${text}`).join('; ')
}

/** The webhooks that it can be sent to again. What was erased cannot. */
export function redrivable({ deliveries }: Pick<AnnouncementView, 'deliveries'>): string[] {
  return deliveries.filter((one) => one.state === 'parked' && one.parkedFor !== 'erased').map((one) => one.webhook)
}
