// An action that somebody asks for: done once, however often it is sent, and what came of it in words.

import { act, newKey, RequestFailed, type WriteOperation } from './requests'
import type { Answers, Bodies, Parameters } from './shapes'

export class Sending {
  isBusy = $state(false)
  said = $state('')
  /** The last answer that was a refusal or a failure; null if there is none. */
  problem = $state.raw<RequestFailed | null>(null)

  #asked = ''
  #key = ''

  /** Forgets what the last answer said. */
  clear(): void {
    this.said = ''
    this.problem = null
  }

  /** Sends it; null when it was not done, or nobody said that it was: then `said` has the reason. */
  async send<Of extends WriteOperation>(operation: Of, parameters: Parameters[Of], body: Bodies[Of]): Promise<Answers[Of] | null> {
    const asked = JSON.stringify([operation, parameters, body])
    // What nobody has answered may have been done: asked for again it is the same.
    if (asked !== this.#asked) this.#key = newKey()
    this.#asked = asked
    this.isBusy = true
    this.clear()
    try {
      const answer = await act(operation, parameters, body, this.#key)
      this.#asked = ''
      return answer.body
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error
      if (!error.isOutage && error.code !== 'unknown') this.#asked = ''
      this.said = error.message
      this.problem = error
      return null
    } finally {
      this.isBusy = false
    }
  }
}
