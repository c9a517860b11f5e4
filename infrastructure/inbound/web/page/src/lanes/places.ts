// The places of all lanes in one list: who holds one, then who waits for one.

import type { LaneView } from '../api/shapes'

export interface Place {
  /** By what it is known while it lasts. */
  key: string
  lane: string
  depth: number
  /** The place in the queue from 1 on; null for whoever holds a slot. */
  place: number | null
  /** Null what this token may not see. */
  runId: string | null
  label: string | null
  holder: string | null
  waitsFor: string | null
}

export function placesOf(lanes: LaneView[]): Place[] {
  return lanes.flatMap(({ lane, depth, running, queued }, number) => [
    ...running.map((one, at) => ({
      lane, depth, key: one.runId ?? `${number}-holds-${at}`, place: null, runId: one.runId, label: one.label,
      holder: one.holder, waitsFor: null,
    })),
    ...queued.map((one) => ({
      lane, depth, key: one.runId ?? `${number}-waits-${one.place}`, place: one.place, runId: one.runId,
      label: one.label, holder: null, waitsFor: one.waitsFor,
    })),
  ])
}
