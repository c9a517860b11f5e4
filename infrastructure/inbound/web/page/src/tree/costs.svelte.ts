// What the trees in sight have cost so far, by one request for all of them.

import { untrack } from 'svelte'
import { SvelteMap } from 'svelte/reactivity'

import type { TreeUsageView } from '../api/shapes'
import { Asked } from '../moment/asked.svelte'
import { moment } from '../moment/moment.svelte'
import { Beat } from '../parts/beat.svelte'
import { Throttle } from '../parts/throttle'
import { askedTrees } from './asked_trees'
import type { Root } from './roots'

const PAUSE_MS = 300
const ASKED_EVERY_MS = 1_000
const USAGE_EVERY_MS = 10_000

/** Asks soon after rows have come into sight, when runs of them started or ended, at most once a second, and every
 * ten seconds while some of them run. */
export class TreeCosts {
  /** The roots in sight, with the number of rows that show each. */
  readonly #seen = new SvelteMap<string, number>()
  #asked = $state.raw<string[]>([])
  #turn = $state('')
  readonly #usage: Asked<'listTreeUsage'>

  constructor(rootsOf: () => Root[]) {
    const inSight = $derived(rootsOf().filter((root) => this.#seen.has(root.sessionKey)))
    const isAnyRunning = $derived(inSight.some((root) => root.running > 0))
    const beat = new Beat(() => (moment.isLive && isAnyRunning ? USAGE_EVERY_MS : null))
    this.#usage = new Asked('listTreeUsage', () => (this.#asked.length === 0 ? null : { tree: this.#asked }), { isFollowing: () => false, turn: () => this.#turn })
    const throttle = new Throttle<{ trees: string[]; turn: string }>(({ trees, turn }) => {
      if (trees.join('\n') !== this.#asked.join('\n')) this.#asked = trees
      this.#turn = turn
    }, PAUSE_MS, ASKED_EVERY_MS)
    $effect(() => {
      const trees = askedTrees(inSight.map((root) => root.sessionKey))
      throttle.give({ trees, turn: `${inSight.map((root) => `${root.ended} ${root.running}`).join()} ${beat.turn}` })
    })
    $effect(() => () => throttle.end())
  }

  /** Note that a row is in sight. Return a function that ends it. */
  show(tree: string): () => void {
    return untrack(() => {
      this.#seen.set(tree, (this.#seen.get(tree) ?? 0) + 1)
      return () => {
        const others = (this.#seen.get(tree) ?? 1) - 1
        if (others > 0) this.#seen.set(tree, others)
        else this.#seen.delete(tree)
      }
    })
  }

  /** The usage of a tree; undefined if it is not known, or nobody has run in it. */
  of(tree: string): TreeUsageView | undefined {
    return this.#usage.value?.items.find((one) => one.tree === tree)
  }
}
