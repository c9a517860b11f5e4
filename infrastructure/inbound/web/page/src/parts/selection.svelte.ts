// The rows of a table that the user has chosen, by key. They stay chosen while the table scrolls and
// refreshes; a view clears them when it asks another question.

import { SvelteSet } from 'svelte/reactivity'

export class Selection {
  readonly #keys = new SvelteSet<string>()
  /** Where a range begins: the row that was toggled last. */
  #anchor: string | null = null

  get size(): number {
    return this.#keys.size
  }

  /** The keys, in the order in which they were chosen. */
  get keys(): string[] {
    return [...this.#keys]
  }

  has(key: string): boolean {
    return this.#keys.has(key)
  }

  toggle(key: string): void {
    if (!this.#keys.delete(key)) this.#keys.add(key)
    this.#anchor = key
  }

  /** Choose everything from the row that was toggled last to this one, in the order of the table. */
  extendTo(key: string, order: readonly string[]): void {
    const ends = [order.indexOf(this.#anchor ?? key), order.indexOf(key)].sort((a, b) => a - b)
    if (ends[0] === -1) this.toggle(key)
    else this.setAll(order.slice(ends[0], ends[1]! + 1), true)
  }

  setAll(keys: readonly string[], isChosen: boolean): void {
    for (const key of keys) {
      if (isChosen) this.#keys.add(key)
      else this.#keys.delete(key)
    }
  }

  clear(): void {
    this.#keys.clear()
    this.#anchor = null
  }
}
