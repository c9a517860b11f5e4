// Cost by day and agent, as a chart stacks it.

import type { DailyUsageView } from '../api/shapes'

export interface Days {
  /** UTC days without a gap, the oldest first: `2026-03-01`. */
  days: string[]
  /** Agents, the most expensive first; the last one stands for all others if its name is null. */
  agents: { name: string | null; values: number[] }[]
  /** Whether values are dollars; else tokens, because nothing has a price. */
  isCost: boolean
}

const AGENTS_MAX = 4
const DAYS_MAX = 92
const DAY_MS = 86_400_000

/** Return the usage of the newest days. Days without usage are in it, with zeros. */
export function daysOf(usage: DailyUsageView[]): Days {
  const isCost = usage.some((one) => (one.estimatedCostUsd ?? 0) > 0)
  const valueOf = (one: DailyUsageView): number => (isCost ? (one.estimatedCostUsd ?? 0) : one.inputTokens + one.outputTokens)
  const instants = usage.map((one) => Date.parse(one.day))
  const last = Math.max(...instants)
  const first = Math.max(Math.min(...instants), last - (DAYS_MAX - 1) * DAY_MS)
  const count = usage.length === 0 ? 0 : (last - first) / DAY_MS + 1
  const days = Array.from({ length: count }, (_, index) => new Date(first + index * DAY_MS).toISOString().slice(0, 10))
  const sums = new Map<string, number>()
  for (const one of usage) if (Date.parse(one.day) >= first) sums.set(one.agentId, (sums.get(one.agentId) ?? 0) + valueOf(one))
  const dearest = [...sums].sort(([, one], [, other]) => other - one).map(([name]) => name)
  const named = dearest.length > AGENTS_MAX + 1 ? dearest.slice(0, AGENTS_MAX) : dearest
  const agents: Days['agents'] = named.map((name) => ({ name, values: days.map(() => 0) }))
  if (named.length < dearest.length) agents.push({ name: null, values: days.map(() => 0) })
  for (const one of usage) {
    const index = (Date.parse(one.day) - first) / DAY_MS
    const agent = agents.find(({ name }) => name === one.agentId) ?? agents.at(-1)
    if (index >= 0 && agent !== undefined) agent.values[index]! += valueOf(one)
  }
  return { days, agents, isCost }
}

/** Return the heights of the stacked agents on each day, the highest stack first: what is drawn later
 * covers the lower part. */
export function stacked({ days, agents }: Days): number[][] {
  const sums = days.map(() => 0)
  return agents.map(({ values }) => values.map((value, index) => (sums[index]! += value))).reverse()
}

/** Return what all agents used on a day. */
export function sumOf({ agents }: Days, index: number): number {
  return agents.reduce((sum, { values }) => sum + (values[index] ?? 0), 0)
}
