// Ways from one moment to another: by events, refusals, failures, and in writing.

import { tick } from 'svelte'

import { read, RequestFailed } from '../api/requests'
import type { Parameters } from '../api/shapes'
import { clock } from '../parts/clock.svelte'
import { count, isRunId } from '../parts/text'
import { preferences } from '../preferences.svelte'
import { readMoment } from './moment_text'
import { moment } from './moment.svelte'

const LOOKS_MAX = 20
const LOOK_EVENTS = 500

interface Kind {
  noun: string
  types?: Parameters['listEvents']['types']
  fits?: (payload: Record<string, unknown>) => boolean
}

const KINDS: Record<'refusal' | 'failure', Kind> = {
  refusal: { noun: 'refusal', types: ['SpawnRefused'] },
  failure: { noun: 'failure', types: ['RunEnded'], fits: (payload) => payload['outcome'] !== 'success' },
}

class Walk {
  /** The result of the last jump, or why there is none. */
  said = $state('')

  /** Jumps wait for each other, so that three presses of a key are three jumps. */
  #jumps: Promise<void> = Promise.resolve()
  /** Grows when the user goes elsewhere during a jump: the jumps that wait are then dropped. */
  #dropped = 0

  /** Go to a position; from the last one on it is live. */
  to(position: number, how: 'scrub' | 'step' | 'go' = 'go'): void {
    const at = Math.max(0, position)
    moment.show(at >= moment.head ? null : `pos:${at}`, how)
  }

  /** Go to the next event (1) or the previous one (-1). */
  step(by: 1 | -1): void {
    if (by === 1 && moment.isLive) return
    this.to((moment.isLive ? moment.head : moment.position) + by, 'step')
  }

  /** Jump to the next refusal (1) or the previous one (-1); on the page of a run to its own events. */
  stride(by: 1 | -1): void {
    const { view, id } = moment.address
    if (view === 'run' && id !== null && isRunId(id)) this.#jump(by, { noun: 'event of this run' }, id)
    else this.jump(by, 'refusal')
  }

  jump(by: 1 | -1, kind: keyof typeof KINDS): void {
    this.#jump(by, KINDS[kind], null)
  }

  /** Go to the moment that a text means. Return False if it means none. */
  async toWritten(text: string): Promise<boolean> {
    const { at, problem } = readMoment(text, { now: clock.now, timeZone: preferences.timeZone, head: moment.head })
    this.said = problem ?? ''
    if (problem !== null) return false
    const left = moment.address
    try {
      // It is looked up first: a wrong moment must not cost the user the one that is shown.
      const found = at === null ? null : await moment.find(at)
      if (moment.address !== left) return true
      moment.show(found)
      return true
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error
      if (moment.address === left) this.said = error.message
      return false
    }
  }

  #jump(by: 1 | -1, kind: Kind, runId: string | null): void {
    if (by === 1 && moment.isLive) return
    const dropped = this.#dropped
    this.#jumps = this.#jumps.then(async () => {
      if (dropped === this.#dropped) await this.#look(by, kind, runId)
    })
  }

  async #look(by: 1 | -1, { noun, types = null, fits = () => true }: Kind, runId: string | null): Promise<void> {
    this.said = ''
    const left = moment.address
    // Live is after the last event.
    let from = moment.isLive ? null : moment.position
    try {
      for (let look = 0; look < LOOKS_MAX; look += 1) {
        const page = await read('listEvents', {
          types, runId, limit: LOOK_EVENTS,
          ...(by === -1 ? { before: from === null ? null : Math.max(1, from), order: 'desc' } : { after: from }),
        })
        if (moment.address !== left) {
          this.#dropped += 1
          return
        }
        moment.takeNote(page)
        const found = page.body.items.find((event) => fits(event.payload))
        if (found) {
          moment.show(`pos:${found.position}`, 'step')
          // The text about the last moment goes first.
          await tick()
          this.said = `${found.type} at position ${count(found.position)}.`
          return
        }
        const last = page.body.items.at(-1)
        if (page.body.items.length < LOOK_EVENTS || last === undefined) {
          this.said = `No ${noun} ${by === -1 ? 'before' : 'after'} this moment.`
          return
        }
        from = last.position
      }
      this.said = `No ${noun} between this moment and position ${count(from ?? 0)}. Go there to look further.`
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error
      this.said = error.message
    }
  }
}

export const walk = new Walk()
