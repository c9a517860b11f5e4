// Names of the runs in a list of events: agent and label. Events have only ids.

import { SvelteMap } from 'svelte/reactivity'

import { read, RequestFailed } from '../api/requests'
import type { EventView } from '../api/shapes'
import { moment } from '../moment/moment.svelte'
import { runName } from '../overview/names'
import { visible } from '../parts/text'

const FIRST_RUNS = 100
const AT_ONCE = 4
/** Who scrolls fast gets the names of the rows that were in sight last. */
const WANTED_MAX = 60

export class RunNames {
  readonly #names = new SvelteMap<string, string>()
  readonly #asked = new Set<string>()
  #wanted: string[] = []
  #isFirstRead = false
  #reading = 0
  #isOver = false

  constructor() {
    $effect(() => () => (this.#isOver = true))
    $effect(() => {
      // Another log has other runs.
      void moment.logs
      this.#asked.clear()
    })
  }

  /** Return the name of a run, or null and look it up. */
  of(runId: string): string | null {
    const name = this.#names.get(runId)
    if (name === undefined && !this.#asked.has(runId)) {
      this.#asked.add(runId)
      this.#wanted.push(runId)
      queueMicrotask(() => void this.#read())
    }
    return name ?? null
  }

  /** Take the names of runs that were requested in these events. */
  learn(events: readonly EventView[]): void {
    for (const { type, runId, payload } of events) {
      if (type !== 'SpawnRequested' || runId === null || this.#names.has(runId)) continue
      const [agent, label] = [payload['requestedAgentId'], payload['label']]
      if (typeof agent === 'string' && typeof label === 'string') this.#names.set(runId, visible(`${agent} · ${label}`))
    }
  }

  async #read(): Promise<void> {
    if (this.#reading >= (this.#isFirstRead ? AT_ONCE : 1) || this.#isOver) return
    this.#reading += 1
    try {
      // The newest events are mostly of the newest runs.
      if (!this.#isFirstRead) await this.#take(async () => (await read('listRuns', { at: moment.at, limit: FIRST_RUNS })).body.items)
      this.#isFirstRead = true
      for (const left of this.#wanted.splice(0, Math.max(0, this.#wanted.length - WANTED_MAX))) this.#asked.delete(left)
      for (let runId = this.#wanted.pop(); runId !== undefined && !this.#isOver; runId = this.#wanted.pop()) {
        const wanted = runId
        if (!this.#names.has(wanted)) await this.#take(async () => {
          const { body } = await read('getRun', { runId: wanted })
          return [{ ...body, taskPreview: 'task' in body ? body.task : null }]
        })
      }
    } finally {
      this.#reading -= 1
    }
  }

  async #take(runs: () => Promise<Parameters<typeof runName>[0][]>): Promise<void> {
    try {
      for (const run of await runs()) this.#names.set(run.runId, runName(run))
    } catch (error) {
      // Without a name the short id is shown.
      if (!(error instanceof RequestFailed)) throw error
    }
  }
}

