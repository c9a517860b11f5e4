// A command of the user that takes effect once, however often it is sent, with its result in words.

import { act, newKey, RequestFailed, type WriteOperation } from './requests'
import type { Answers, Bodies, Parameters } from './shapes'

export class Sending {
  isBusy = $state(false)
  said = $state('')
  /** The last refusal or failure, or null. */
  problem = $state.raw<RequestFailed | null>(null)

  #unanswered = ''
  #key = ''

  /** Clear the last result. */
  clear(): void {
    this.said = ''
    this.problem = null
  }

  /** Send the command. Return null if it failed or its outcome is unknown; `said` has the reason. */
  async send<Of extends WriteOperation>(operation: Of, parameters: Parameters[Of], body: Bodies[Of]): Promise<Answers[Of] | null> {
    const request = JSON.stringify([operation, parameters, body])
    // A request without a response may have taken effect: a retry keeps its key.
    if (request !== this.#unanswered) this.#key = newKey()
    this.#unanswered = request
    this.isBusy = true
    this.clear()
    try {
      const answer = await act(operation, parameters, body, this.#key)
      this.#unanswered = ''
      return answer.body
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error
      if (!error.isOutage && error.code !== 'unknown') this.#unanswered = ''
      this.said = error.message
      this.problem = error
      return null
    } finally {
      this.isBusy = false
    }
  }
}
