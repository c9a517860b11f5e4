// JSON without rounding: numbers beyond the precision of JavaScript keep their text.

interface RawJson {
  rawJSON?: (source: string) => object
  isRawJSON?: (value: unknown) => boolean
}
const raw = JSON as unknown as RawJson
/** Pattern of numbers that may be too long, outside of most strings. Checking every number is slow. */
const LONG_NUMBER = /[:[,\s]-?\d{16}/

export function readJson(text: string): unknown {
  if (raw.rawJSON === undefined || !LONG_NUMBER.test(` ${text}`)) return JSON.parse(text)
  const keep = (_: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === 'number' && /^-?\d+$/.test(context?.source ?? '') && !Number.isSafeInteger(value) ? raw.rawJSON?.(context?.source ?? '') : value
  return JSON.parse(text, keep as (key: string, value: unknown) => unknown)
}

/** Return true for a number that keeps its text. `JSON.stringify` writes the same text. */
export function isLongNumber(value: unknown): boolean {
  return raw.isRawJSON?.(value) ?? false
}
