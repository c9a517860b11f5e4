// JSON of which no number is rounded: what JavaScript cannot count is kept as it was written.

interface RawJson {
  rawJSON?: (source: string) => object
  isRawJSON?: (value: unknown) => boolean
}
const raw = JSON as unknown as RawJson
/** A number that is perhaps too long, outside of most strings: to look at each takes its time. */
const LONG_NUMBER = /[:[,\s]-?\d{16}/

export function readJson(text: string): unknown {
  if (raw.rawJSON === undefined || !LONG_NUMBER.test(` ${text}`)) return JSON.parse(text)
  const keep = (_: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === 'number' && /^-?\d+$/.test(context?.source ?? '') && !Number.isSafeInteger(value) ? raw.rawJSON?.(context?.source ?? '') : value
  return JSON.parse(text, keep as (key: string, value: unknown) => unknown)
}

/** Whether it is a number that is kept as it was written. `JSON.stringify` writes it so again. */
export function isLongNumber(value: unknown): boolean {
  return raw.isRawJSON?.(value) ?? false
}
