// An error as a headline and the rest.

const HEADLINE_CHARS_MAX = 300

export interface ErrorText {
  headline: string
  /** All of it, if that is more than the headline. */
  whole: string | null
  lines: number
}

/** Return the last line that says something as the headline: of a traceback that is the cause. */
export function errorOf(text: string): ErrorText {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const last = (lines.at(-1) ?? '').trim()
  const headline = last.length > HEADLINE_CHARS_MAX ? `${last.slice(0, HEADLINE_CHARS_MAX)} …` : last
  return { headline, whole: lines.length > 1 || headline !== last ? text : null, lines: lines.length }
}
