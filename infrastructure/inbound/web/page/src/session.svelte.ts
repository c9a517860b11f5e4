// The signed-in user: the token of this browser, and what it permits.

import {
  actAsNobody, forgetAnswers, mayBeToken, onTokenChange, onTokenRefused, read, readToken, RequestFailed, revokeToken, writeToken,
} from './api/requests'
import type { CallerView } from './api/shapes'

export type Scope = CallerView['scopes'][number]

/** Return true if the document says that the server requires a token. */
function wantsToken(): boolean {
  return document.querySelector('meta[name=authentication]')?.getAttribute('content') !== 'none'
}

/** Return the one-time code of the address, and remove it there at once: no history keeps it. */
function takeCode(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get('code')
  if (code !== null) history.replaceState(null, '', location.pathname + location.search)
  return code
}

const RETRY_MS = 1_000
const NO_TOKEN = 'Invalid token. Check that you copied all of it.'

class Session {
  caller = $state.raw<CallerView | null>(null)
  state = $state<'asking' | 'signed-in' | 'signed-out' | 'away'>('asking')
  problem = $state<string | null>(null)

  // Grows with each token: late answers to an earlier one are dropped.
  #turn = 0

  may(scope: Scope): boolean {
    const scopes = this.caller?.scopes ?? []
    return scopes.includes(scope) || scopes.includes('admin')
  }

  get seesEverything(): boolean {
    return this.caller?.patterns.includes('*') ?? false
  }

  /** Load the signed-in user. If authentication is off, no token is needed. */
  async begin(): Promise<void> {
    onTokenChange(() => void this.#ask())
    onTokenRefused(() => this.refuse())
    // An address with a code may be opened in a tab that shows the page already.
    addEventListener('hashchange', () => {
      const code = takeCode()
      if (code !== null) void this.#trade(code)
    })
    const code = takeCode()
    await (code === null ? this.#ask() : this.#trade(code))
  }

  async signIn(token: string): Promise<void> {
    this.problem = null
    const text = token.trim()
    if (!mayBeToken(text)) {
      this.problem = NO_TOKEN
      return
    }
    writeToken(text)
    await this.#ask()
    if (this.state === 'signed-out') {
      writeToken(null)
      this.problem = NO_TOKEN
    }
  }

  async #trade(code: string): Promise<void> {
    if (!wantsToken()) return this.#ask()
    try {
      const traded = await actAsNobody('tradePageCode', {}, { code })
      void revokeToken()
      writeToken(traded.body.token)
      await this.#ask()
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error
      if (error.isOutage && this.state !== 'signed-in') {
        this.state = 'away'
        this.problem = error.message
        setTimeout(() => void this.#trade(code), RETRY_MS)
        return
      }
      // A user who was signed in stays signed in.
      if (this.state !== 'signed-in') await this.#ask()
      if (this.state === 'signed-out') this.problem = error.message
    }
  }

  /** Sign out in all tabs of this browser, and revoke a token that was made for the page. */
  signOut(): void {
    void revokeToken()
    this.#leave()
  }

  #leave(): void {
    writeToken(null)
    forgetAnswers()
    this.#turn += 1
    this.caller = null
    this.problem = null
    this.state = 'signed-out'
  }

  /** Sign out because the server no longer accepts the token. */
  refuse(): void {
    if (this.state !== 'signed-in') return
    this.#leave()
    this.problem = 'This token is no longer valid. Sign in again.'
  }

  async #ask(): Promise<void> {
    forgetAnswers()
    const turn = (this.#turn += 1)
    this.problem = null
    // Never show the previous user's data to the next one.
    if (this.state === 'signed-in') this.state = 'asking'
    if (readToken() === null && wantsToken()) {
      this.caller = null
      this.state = 'signed-out'
      return
    }
    try {
      const { body } = await read('getMe', {})
      // Another token was set since.
      if (turn !== this.#turn) return
      this.caller = body
      this.state = 'signed-in'
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error
      if (turn !== this.#turn) return
      this.caller = null
      this.state = error.status === 401 ? 'signed-out' : 'away'
      if (this.state === 'away') {
        this.problem = error.message
        setTimeout(() => {
          if (turn === this.#turn) void this.#ask()
        }, RETRY_MS)
      }
    }
  }
}

export const session = new Session()
