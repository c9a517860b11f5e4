// A list as of the moment: its first page follows the log, further pages are read on demand.

import { untrack } from 'svelte'

import { read, RequestFailed, type Exactly, type ReadOperation } from '../api/requests'
import type { Answers, Parameters } from '../api/shapes'
import { Asked } from './asked.svelte'
import { moment } from './moment.svelte'

type Place = string | number | null

/** How to read the rows of a page, and where the next one begins. */
export interface Reading<Row, Of extends ReadOperation> {
  rowsOf: (page: Answers[Of]) => Row[]
  nextOf: (page: Answers[Of]) => Place
  /** The parameter that takes the value of `nextOf`. */
  readonly nextName: keyof Parameters[Of] & ('cursor' | 'after' | 'before')
  /** Other parameters of the pages after the first one. */
  moreParameters?: Partial<Parameters[Of]>
  /** Whether rows never change: pages after the first one may then be newer than it. */
  neverChanges?: boolean
  /** Maximum number of rows to keep while the end of the list is followed; null keeps all. */
  keptMax?: () => number | null
  /** Maximum number of empty pages to read in a row. */
  looksMax?: number
}

const LOOKS_MAX = 10
const RETRY_MS = 1_000

export class Listing<Row, Of extends ReadOperation, Given extends Parameters[Of] = Parameters[Of]> {
  /** Whether the user is at the top and has selected no row: then rows may change. */
  isAtRest = $state(true)
  isReadingMore = $state(false)
  /** Whether further pages were read. */
  hasRead = $state(false)
  moreProblem = $state.raw<RequestFailed | null>(null)
  readonly page: Asked<Of>

  /** The first page as it was when the user read on: further pages continue that one. */
  #first = $state.raw<{ page: Answers[Of]; position: number } | null>(null)
  #more = $state.raw<Row[]>([])
  #next = $state<Place>(null)
  #retry: ReturnType<typeof setTimeout> | undefined
  /** Grows when all rows are forgotten: late answers are then dropped. */
  #forgotten = 0
  /** Whether its view was closed: late answers are then dropped. */
  #isOver = false
  readonly #operation: Of
  readonly #reading: Reading<Row, Of>
  readonly #parameters: () => Exactly<Of, Given>

  /** When `turn` changes, the first page is read again, if it follows the log. */
  constructor(operation: Of, reading: Reading<Row, Of>, parameters: () => Exactly<Of, Given>, turn?: () => number) {
    this.#operation = operation
    this.#reading = reading
    this.#parameters = parameters
    this.page = new Asked<Of, Given>(operation, parameters, { isFollowing: () => this.isFollowing, ...(turn ? { turn } : {}) })
    $effect(() => {
      // Rows of another question must not stay.
      void this.#question()
      untrack(() => this.forget())
    })
    $effect(() => () => {
      this.#isOver = true
      clearTimeout(this.#retry)
    })
  }

  /** While the user reads further down nothing moves: newer events are counted, and shown on demand. */
  get isFollowing(): boolean {
    return this.isAtRest && this.#first === null
  }

  get rows(): Row[] {
    const page = this.#first?.page ?? this.page.value
    return page === null ? [] : this.#newest([...this.#reading.rowsOf(page), ...this.#more])
  }

  /** The position of the first page. */
  get position(): number {
    return this.#first?.position ?? this.page.position
  }

  /** Where the next page begins; null at the end, and while the first page is of another question. */
  get next(): Place {
    const page = this.#first?.page ?? this.page.value
    if (page === null || !this.page.isCurrent) return null
    return this.hasRead ? this.#next : this.#reading.nextOf(page)
  }

  /** Number of events that were recorded since the first page. */
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

  /** Read on for a table that is short of rows. A request that failed is not repeated at once. */
  readOn(): void {
    if (this.moreProblem === null) void this.readMore()
  }

  /** Read on until a page has rows or the list ends. Return the number of rows that were added. */
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
        // A cursor contains the moment of its first page; a position needs `at`.
        const { nextName, neverChanges, moreParameters } = this.#reading
        const at = moment.at ?? (nextName === 'cursor' || neverChanges ? null : `pos:${this.position}`)
        // A server that lags behind this page would end the list too early.
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

  /** Return the rows to keep. */
  #newest(rows: Row[]): Row[] {
    const max = this.#reading.keptMax?.() ?? null
    return max === null ? rows : rows.slice(-max)
  }

  #question(): string {
    return JSON.stringify([moment.at, this.#parameters(), moment.logs])
  }
}
