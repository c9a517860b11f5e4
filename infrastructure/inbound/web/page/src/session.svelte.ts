// Who looks: the token of this browser, and what it is good for.

import { act, forgetAnswers, onTokenChange, read, readToken, RequestFailed, revokeToken, writeToken } from './api/requests'
import type { CallerView, PageTokenAnswer } from './api/shapes'

export type Scope = CallerView['scopes'][number]

/** Whether the server wants a token, as it says in the document. */
function wantsToken(): boolean {
  return document.querySelector('meta[name=authentication]')?.getAttribute('content') !== 'none'
}

/** The code that the page was opened with. It goes from the address at once: it stays in no history. */
function takeCode(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get('code')
  if (code !== null) history.replaceState(null, '', location.pathname + location.search)
  return code
}

class Session {
  caller = $state.raw<CallerView | null>(null)
  state = $state<'asking' | 'signed-in' | 'signed-out' | 'away'>('asking')
  problem = $state<string | null>(null)

  may(scope: Scope): boolean {
    const scopes = this.caller?.scopes ?? []
    return scopes.includes(scope) || scopes.includes('admin')
  }

  get seesEverything(): boolean {
    return this.caller?.patterns.includes('*') ?? false
  }

  /** Finds out who looks. Where authentication is off nobody needs a token. */
  async begin(): Promise<void> {
    onTokenChange(() => void this.#ask())
    const code = takeCode()
    if (code === null || !wantsToken()) {
      await this.#ask()
      return
    }
    try {
      const traded = await act<PageTokenAnswer>('POST', '/v1/page-tokens', { code })
      void revokeToken()
      writeToken(traded.body.token)
      await this.#ask()
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error
      // Who was signed in before still is.
      await this.#ask()
      if (this.state === 'signed-out') this.problem = error.message
    }
  }

  async signIn(token: string): Promise<void> {
    writeToken(token.trim())
    await this.#ask()
    if (this.state === 'signed-out') {
      writeToken(null)
      this.problem = 'The server does not know this token. Copy the whole of it.'
    }
  }

  /** In all tabs of this browser; a token that was made for the page is then good for nothing. */
  signOut(): void {
    void revokeToken()
    this.#leave()
  }

  #leave(): void {
    writeToken(null)
    forgetAnswers()
    this.caller = null
    this.problem = null
    this.state = 'signed-out'
  }

  /** The token was good and is not any more. */
  refuse(): void {
    if (this.state !== 'signed-in') return
    this.#leave()
    this.problem = 'The token is not valid any more. Sign in again.'
  }

  async #ask(): Promise<void> {
    forgetAnswers()
    this.problem = null
    if (readToken() === null && wantsToken()) {
      this.caller = null
      this.state = 'signed-out'
      return
    }
    try {
      this.caller = (await read<CallerView>('/v1/me')).body
      this.state = 'signed-in'
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error
      this.caller = null
      this.state = error.status === 401 ? 'signed-out' : 'away'
      if (this.state === 'away') {
        this.problem = error.message
        setTimeout(() => void this.#ask(), 1_000)
      }
    }
  }
}

export const session = new Session()
