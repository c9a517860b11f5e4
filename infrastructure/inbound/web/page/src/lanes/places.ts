// The places of all lanes in one list: who holds one, then who waits for one.

import type { LaneView } from '../api/shapes'
import { count, counted, visible } from '../parts/text'

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

/** Return where a run is: `holds a slot`, or `1 in line for a slot`. */
export function placeText({ place, waitsFor }: Pick<Place, 'place' | 'waitsFor'>, isQueued = false): string {
  if (place === null) return isQueued ? 'holds a slot, not started' : 'holds a slot'
  return `${count(place)} in line${waitsFor === 'a slot' ? ' for a slot' : waitsFor === null ? '' : `, ${visible(waitsFor)}`}`
}

/** Return `2 slots taken (1 not started)`: a run that holds a slot is queued until it starts. */
export function takenText(taken: number, notStarted: number): string {
  return `${counted(taken, 'slot')} taken${notStarted > 0 ? ` (${count(notStarted)} not started)` : ''}`
}

/** Return how many runs hold a slot and how many wait for one, in all lanes. */
export function sumsOf(lanes: readonly LaneView[]): { taken: number; queued: number } {
  return {
    taken: lanes.reduce((sum, lane) => sum + lane.running.length, 0),
    queued: lanes.reduce((sum, lane) => sum + lane.queued.length, 0),
  }
}

/** Return true if a value is not the same in all rows: only then it needs a column. */
export function differs<Row>(rows: readonly Row[], valueOf: (row: Row) => unknown): boolean {
  return rows.some((row) => valueOf(row) !== valueOf(rows[0]!))
}
