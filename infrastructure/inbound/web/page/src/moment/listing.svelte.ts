// A listing as of the moment: its first page follows the log, the pages behind it come on demand.

import { untrack } from 'svelte'

import { read, RequestFailed, type Exactly, type ReadOperation } from '../api/requests'
import type { Answers, Parameters } from '../api/shapes'
import { Asked } from './asked.svelte'
import { moment } from './moment.svelte'

type Place = string | number | null

/** How a page says what is on it, and where the next one begins. */
export interface Reading<Row, Of extends ReadOperation> {
  rowsOf: (page: Answers[Of]) => Row[]
  nextOf: (page: Answers[Of]) => Place
  /** The name of the parameter that takes what `nextOf` gives. */
  readonly nextName: keyof Parameters[Of] & ('cursor' | 'after' | 'before')
  /** What the pages behind the first one are asked for otherwise. */
  moreParameters?: Partial<Parameters[Of]>
  /** Whether a row that is there never changes: the pages behind the first one may then be newer than it. */
  neverChanges?: boolean
  /** How many rows are kept while the end of the list is followed; null keeps all. */
  keptMax?: () => number | null
  /** How many pages are read for one that has something on it. */
  looksMax?: number
}

const LOOKS_MAX = 10
const RETRY_MS = 1_000

export class Listing<Row, Of extends ReadOperation, Given extends Parameters[Of] = Parameters[Of]> {
  /** Whether the reader is at the top and has chosen nothing: then rows may change. */
  isAtRest = $state(true)
  isReadingMore = $state(false)
  /** Whether there is more than the first page. */
  hasRead = $state(false)
  moreProblem = $state.raw<RequestFailed | null>(null)
  readonly page: Asked<Of>

  /** The first page as it was when somebody began to read on: what follows it follows that one. */
  #first = $state.raw<{ page: Answers[Of]; position: number } | null>(null)
  #more = $state.raw<Row[]>([])
  #next = $state<Place>(null)
  #retry: ReturnType<typeof setTimeout> | undefined
  /** How often all of it was forgotten: what was asked for before is not of it. */
  #forgotten = 0
  /** Whether its view is gone: nothing of that may be read any more. */
  #isOver = false
  readonly #operation: Of
  readonly #reading: Reading<Row, Of>
  readonly #parameters: () => Exactly<Of, Given>

  /** While `turn` changes, the first page is read again if it is followed. */
  constructor(operation: Of, reading: Reading<Row, Of>, parameters: () => Exactly<Of, Given>, turn?: () => number) {
    this.#operation = operation
    this.#reading = reading
    this.#parameters = parameters
    this.page = new Asked<Of, Given>(operation, parameters, { isFollowing: () => this.isFollowing, ...(turn ? { turn } : {}) })
    $effect(() => {
      // Another question: what was read of the last one is not of it.
      void this.#question()
      untrack(() => this.forget())
    })
    $effect(() => () => {
      this.#isOver = true
      clearTimeout(this.#retry)
    })
  }

  /** While somebody reads further down nothing moves: what is newer is counted, and shown on demand. */
  get isFollowing(): boolean {
    return this.isAtRest && this.#first === null
  }

  get rows(): Row[] {
    const page = this.#first?.page ?? this.page.value
    return page === null ? [] : this.#newest([...this.#reading.rowsOf(page), ...this.#more])
  }

  /** As of which position the first of them are. */
  get position(): number {
    return this.#first?.position ?? this.page.position
  }

  /** Where the next page begins; null at the end, and while the first page is that of another question. */
  get next(): Place {
    const page = this.#first?.page ?? this.page.value
    if (page === null || !this.page.isCurrent) return null
    return this.hasRead ? this.#next : this.#reading.nextOf(page)
  }

  /** How many events were recorded since what is shown. */
  get newer(): number {
    return moment.isLive && !this.isFollowing ? moment.head - this.position : 0
  }

  /** Back to the first page, as of now. */
  forget(): void {
    this.#forgotten += 1
    this.#first = null
    this.#more = []
    this.#next = null
    this.hasRead = false
    this.moreProblem = null
    clearTimeout(this.#retry)
  }

  /** Reads on for a table that is short of rows. What has failed is not asked again at once. */
  readOn(): void {
    if (this.moreProblem === null) void this.readMore()
  }

  /** Reads on, until there is something or the end; gives how many rows were added. */
  async readMore(): Promise<number> {
    if (this.isReadingMore || this.next === null || this.page.value === null) return 0
    this.isReadingMore = true
    clearTimeout(this.#retry)
    const forgotten = this.#forgotten
    let found = 0
    if (this.#first === null) this.#first = { page: this.page.value, position: this.page.position }
    try {
      const looksMax = this.#reading.looksMax ?? LOOKS_MAX
      for (let look = 0; look < looksMax && found === 0; look += 1) {
        const from = this.next
        if (from === null) break
        // A cursor knows of which moment its first page was; a position has to be told.
        const { nextName, neverChanges, moreParameters } = this.#reading
        const at = moment.at ?? (nextName === 'cursor' || neverChanges ? null : `pos:${this.position}`)
        // A server that is behind what this page knows of would end the list too early.
        const newest = neverChanges && moment.isLive && moment.head > 0 ? { minPosition: moment.head } : {}
        const parameters: Parameters[Of] = { ...this.#parameters(), ...moreParameters, ...newest, at, [nextName]: from }
        const answer = await read(this.#operation, parameters as Exactly<Of, Parameters[Of]>)
        if (this.#isOver || forgotten !== this.#forgotten) return 0
        const rows = this.#reading.rowsOf(answer.body)
        found = rows.length
        this.#more = this.#newest([...this.#more, ...rows])
        this.#next = this.#reading.nextOf(answer.body)
        this.hasRead = true
        if (this.#next === from) break
      }
      this.moreProblem = null
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error
      if (this.#isOver || forgotten !== this.#forgotten) return 0
      this.moreProblem = error
      if (!this.hasRead) this.#first = null
      if (error.isOutage) this.#retry = setTimeout(() => void this.readMore(), error.retryAfterMs ?? RETRY_MS)
    } finally {
      this.isReadingMore = false
    }
    return found
  }

  /** Those of the rows that are kept. */
  #newest(rows: Row[]): Row[] {
    const max = this.#reading.keptMax?.() ?? null
    return max === null ? rows : rows.slice(-max)
  }

  #question(): string {
    return JSON.stringify([moment.at, this.#parameters(), moment.logs])
  }
}
