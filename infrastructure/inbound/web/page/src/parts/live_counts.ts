// Counts of what is going on, which the server ends early in a large log.

import { count } from './text'

/** Return `5,000 or more` for a count that was ended early. */
export function atLeast(of: number, isCut: boolean): string {
  return `${count(of)}${isCut ? ' or more' : ''}`
}
