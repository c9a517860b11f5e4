// A prompt cut into its parts. Offsets are of UTF-8 bytes, and JavaScript counts in UTF-16.

import type { PromptPartView } from '../api/shapes'

export interface PromptPart extends PromptPartView {
  text: string
}

/** The parts of one of the two texts, in order, each with its own text. */
export function cutIntoParts(text: string, of: PromptPartView['of'], parts: PromptPartView[]): PromptPart[] {
  const bytes = new TextEncoder().encode(text)
  const decoder = new TextDecoder()
  return parts
    .filter((part) => part.of === of)
    .sort((one, other) => one.start - other.start)
    .map((part) => ({ ...part, text: decoder.decode(bytes.subarray(part.start, part.end)) }))
}
