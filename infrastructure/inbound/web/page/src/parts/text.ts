// How values are shown.

/** Return an instant in UTC, to the second: `2026-03-01 09:00:00`. */
export function instant(at: string | null | undefined): string {
  return at ? at.slice(0, 19).replace('T', ' ') : ''
}

/** Return the time of day of an instant, in UTC: `09:00:00.123`. */
export function clock(at: string | null | undefined): string {
  return at ? at.slice(11, 23).replace('Z', '') : ''
}

/** Return the time of day, with the date in front if it is another day than that of `first`. */
export function clockAfter(first: string, at: string): string {
  return first.slice(0, 10) === at.slice(0, 10) ? clock(at) : `${at.slice(0, 10)} ${clock(at)}`
}

/** Return a duration in at most two units: `999 ms`, `1.5 s`, `2 min 3 s`, `1 h 1 min`, `2 d 7 h`. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`
  const seconds = milliseconds / 1_000
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}

/** Return whole milliseconds as the server counts them: instants have microseconds, which `Date` drops. */
export function millisecondsBetween(from: string, to: string): number {
  const micros = (at: string): number => Number(/\.\d{3}(\d{3})/.exec(at)?.[1] ?? 0)
  return Math.floor(Date.parse(to) - Date.parse(from) + (micros(to) - micros(from)) / 1_000)
}

const THOUSANDS = /\B(?=(\d{3})+(?!\d))/g

/** Return a whole number with its thousands apart: `2,241`. */
export function count(of: number): string {
  // The first number that `Intl` formats takes a browser some 50 ms.
  return grouped(String(of))
}

/** Group the digits before the point. */
function grouped(number: string): string {
  const [whole = '', fraction] = number.split('.')
  return whole.replace(THOUSANDS, ',') + (fraction === undefined ? '' : `.${fraction}`)
}

/** Return an amount of US dollars: with cents from one dollar on, below it with four digits. */
export function dollars(usd: number): string {
  if (usd > 0 && usd < 0.0001) return '<$0.0001'
  const digits = usd >= 1 || usd === 0 ? 2 : 4
  return `$${grouped(usd.toFixed(digits))}`
}

/** Return a number of tokens, to three digits from ten thousand on: `9,999`, `12.3 k`, `1.20 M`. */
export function tokens(of: number): string {
  if (of < 10_000) return count(of)
  const [value, unit] = of < 999_500 ? [of / 1_000, 'k'] : of < 999_500_000 ? [of / 1_000_000, 'M'] : [of / 1_000_000_000, 'G']
  return `${value < 1_000 ? value.toPrecision(3) : count(Math.round(value))} ${unit}`
}

/** What an estimated cost leaves out: `1 of 2 models has no price`, or nothing. */
export function unpriced(models: number, without: number): string {
  return without === 0 ? '' : `${count(without)} of ${counted(models, 'model')} ${without === 1 ? 'has' : 'have'} no price`
}

/** The meaning of a position. */
export const POSITION_MEANING = 'The number of an event in the log, counted from 1.'
/** The same where it is a link: in a column or a field. */
export const POSITION_TIP = `${POSITION_MEANING} Click it to see everything as it was then.`

/** Return a number with its noun: `1 event`, `2,000 entries`; `plural` if the noun is irregular. */
export function counted(of: number, noun: string, plural = /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}s`): string {
  return `${count(of)} ${of === 1 ? noun : plural}`
}

const RUN_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Return true if a text is a whole run id; anything else need not be requested. */
export function isRunId(text: string): boolean {
  return RUN_ID.test(text)
}

export function shortId(id: string): string {
  return id.slice(0, 8)
}

/**
 * Return a text with its control characters and direction marks made visible, so that it can neither
 * hide nor reorder anything: U+202E becomes `⟨202E⟩`. Line feed and tab stay.
 */
export function visible(text: string): string {
  return text.replace(CONTROL, (mark) => `⟨${mark.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟩`)
}

// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\u{e0000}-\u{e007f}]/gu

const SHOWN_CHARS_MAX = 200_000

/** Return the beginning of a long text, and how many characters are left out. */
export function cut(text: string, most = SHOWN_CHARS_MAX): { text: string; left: number } {
  return text.length <= most ? { text, left: 0 } : { text: text.slice(0, most), left: text.length - most }
}

/** Return an argument quoted for a POSIX shell. */
export function quoted(argument: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`
}
