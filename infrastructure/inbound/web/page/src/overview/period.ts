// The range of time that the overview sums up: since midnight, or the last hours or days.

import { instantOf, wallTime } from '../moment/zone'

export const PERIODS = ['today', '1h', '24h', '7d'] as const
export type Period = (typeof PERIODS)[number]

export const PERIOD_NAMES: Record<Period, string> = { today: 'Today', '1h': '1 hour', '24h': '24 hours', '7d': '7 days' }

const HOUR_MS = 3_600_000
const LENGTHS_MS: Record<Exclude<Period, 'today'>, number> = { '1h': HOUR_MS, '24h': 24 * HOUR_MS, '7d': 168 * HOUR_MS }

/** Return the period that the address names; today if it names none. */
export function periodOf(text: string | null): Period {
  return PERIODS.find((period) => period === text) ?? 'today'
}

/**
 * Return the start of a period that ends at `now`, as a moment for the server.
 *
 * Live, the last hours are a time ago, which moves on by itself. In the past it is an instant.
 */
export function startOf(period: Period, now: number, timeZone: string, isLive: boolean): string {
  if (period !== 'today') return isLive ? period : new Date(now - LENGTHS_MS[period]).toISOString()
  const midnight = instantOf({ ...wallTime(now, timeZone), hour: 0, minute: 0, second: 0 }, timeZone) ?? now
  return new Date(midnight).toISOString().replace('.000Z', 'Z')
}
