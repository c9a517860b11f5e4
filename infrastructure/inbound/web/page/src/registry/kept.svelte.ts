// Settings of the list of runs stored in this browser: chosen columns and saved views.

import { NAME_CHARS_MAX, readViews, writeViews, type SavedView } from './saved'

const COLUMNS_KEY = 'spawnlog.runs.columns'
const VIEWS_KEY = 'spawnlog.runs.views'

class Kept {
  #columns = $state<string | null>(localStorage.getItem(COLUMNS_KEY))
  #views = $state.raw<SavedView[]>(readViews(localStorage.getItem(VIEWS_KEY)))

  constructor() {
    // Another tab of this browser has changed them.
    addEventListener('storage', (event) => {
      if (event.key === COLUMNS_KEY || event.key === null) this.#columns = localStorage.getItem(COLUMNS_KEY)
      if (event.key === VIEWS_KEY || event.key === null) this.#views = readViews(localStorage.getItem(VIEWS_KEY))
    })
  }

  get columns(): string | null {
    return this.#columns
  }

  set columns(text: string | null) {
    this.#columns = text
    if (text === null) localStorage.removeItem(COLUMNS_KEY)
    else localStorage.setItem(COLUMNS_KEY, text)
  }

  get views(): SavedView[] {
    return this.#views
  }

  /** Keep a view; one with the same name is replaced. */
  save(view: SavedView): void {
    const name = view.name.trim().slice(0, NAME_CHARS_MAX)
    this.#store([{ ...view, name }, ...this.#views.filter((one) => one.name !== name)])
  }

  forget(name: string): void {
    this.#store(this.#views.filter((one) => one.name !== name))
  }

  #store(views: SavedView[]): void {
    const text = writeViews(views)
    localStorage.setItem(VIEWS_KEY, text)
    this.#views = readViews(text)
  }
}

export const kept = new Kept()
